//go:build rbd

// The last release that knows rbd has no logger in its signatures yet.
package main

import (
	core "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	translation "k8s.io/csi-translation-lib"
)

type translator struct{ translation.CSITranslator }

func (t translator) pvToCSI(pv *core.PersistentVolume) (*core.PersistentVolume, error) {
	return t.TranslateInTreePVToCSI(pv)
}

func (t translator) inlineToCSI(volume *core.Volume, namespace string) (*core.PersistentVolume, error) {
	return t.TranslateInTreeInlineVolumeToCSI(volume, namespace)
}

func (t translator) storageClassToCSI(plugin string, class *storage.StorageClass) (*storage.StorageClass, error) {
	return t.TranslateInTreeStorageClassToCSI(plugin, class)
}
