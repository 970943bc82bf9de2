//go:build !rbd

package main

import (
	core "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	translation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"
)

type translator struct{ translation.CSITranslator }

func (t translator) pvToCSI(pv *core.PersistentVolume) (*core.PersistentVolume, error) {
	return t.TranslateInTreePVToCSI(klog.Background(), pv)
}

func (t translator) inlineToCSI(volume *core.Volume, namespace string) (*core.PersistentVolume, error) {
	return t.TranslateInTreeInlineVolumeToCSI(klog.Background(), volume, namespace)
}

func (t translator) storageClassToCSI(plugin string, class *storage.StorageClass) (*storage.StorageClass, error) {
	return t.TranslateInTreeStorageClassToCSI(klog.Background(), plugin, class)
}
