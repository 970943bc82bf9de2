package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"path"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

// journal writes down every call that says something about a volume or a node.
type journal struct {
	file *os.File
	node string
}

type entry struct {
	Time   time.Time `json:"time"`
	Call   string    `json:"call"`
	Volume string    `json:"volume"`
	Node   string    `json:"node"`
	Error  string    `json:"error"`
}

// openJournal opens the file for appending, so that several drivers may share it.
func openJournal(name, node string) (*journal, error) {
	if name == "" {
		name = os.DevNull
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	return &journal{file: file, node: node}, err
}

func (j *journal) Close() error { return j.file.Close() }

// intercept writes before the answer is sent: who has the answer finds the call in the file.
func (j *journal) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	response, err := handler(ctx, request)
	if worthALine(info.FullMethod) {
		j.write(info.FullMethod, request, response, err)
	}
	return response, err
}

func worthALine(method string) bool {
	switch path.Base(method) {
	case "Probe", "GetPluginCapabilities", "ControllerGetCapabilities", "NodeGetCapabilities":
		return false
	}
	return strings.HasPrefix(method, "/csi.v1.")
}

func (j *journal) write(method string, request, response any, err error) {
	line := entry{Time: time.Now().UTC(), Call: path.Base(method)}
	if strings.HasPrefix(method, "/csi.v1.Node/") {
		line.Node = j.node
	}
	if named, ok := request.(interface{ GetNodeId() string }); ok {
		line.Node = named.GetNodeId()
	}
	if named, ok := request.(interface{ GetVolumeId() string }); ok {
		line.Volume = named.GetVolumeId()
	}
	if created, ok := response.(*csi.CreateVolumeResponse); ok {
		line.Volume = created.GetVolume().GetVolumeId()
	}
	if err != nil {
		line.Error = err.Error()
	}
	text, err := json.Marshal(line)
	if err == nil {
		_, err = j.file.Write(append(text, '\n'))
	}
	if err != nil {
		log.Printf("the call %s could not be written down: %v", line.Call, err)
	}
}
