// Kubernetes' own translator, asked and answering in lines of JSON.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	core "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	translation "k8s.io/csi-translation-lib"
)

type request struct {
	Op           string
	PV           *core.PersistentVolume
	Volume       *core.Volume
	PodNamespace string
	Plugin       string
	StorageClass *storage.StorageClass
	Driver       string
	Handle       string
	NodeID       string
}

type answer struct {
	Expect any    `json:"expect,omitempty"`
	Error  string `json:"error,omitempty"`
	Panic  bool   `json:"panic,omitempty"`
}

func main() {
	questions, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	questions.DisallowUnknownFields()
	reference := translator{translation.New()}
	for {
		var asked request
		if err := questions.Decode(&asked); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatalf("not a request: %v", err)
		}
		if err := answers.Encode(reference.answer(asked)); err != nil {
			log.Fatalf("cannot answer: %v", err)
		}
	}
}

func (t translator) answer(asked request) (given answer) {
	defer func() {
		if recover() != nil {
			given = answer{Panic: true}
		}
	}()
	translated, err := t.translate(asked)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Expect: translated}
}

func (t translator) translate(asked request) (any, error) {
	switch asked.Op {
	case "pvToCSI":
		return t.pvToCSI(asked.PV)
	case "pvToInTree":
		return t.TranslateCSIPVToInTree(asked.PV)
	case "inlineToCSI":
		return t.inlineToCSI(asked.Volume, asked.PodNamespace)
	case "storageClassToCSI":
		return t.storageClassToCSI(asked.Plugin, asked.StorageClass)
	case "repairHandle":
		return t.RepairVolumeHandle(asked.Driver, asked.Handle, asked.NodeID)
	}
	return nil, fmt.Errorf("unknown operation %q", asked.Op)
}
