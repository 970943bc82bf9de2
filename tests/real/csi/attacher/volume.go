package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	core "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	translation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"
)

// publishRequest says what is to be attached; the node is left to the caller.
func (a *attacher) publishRequest(va *storage.VolumeAttachment) (*csi.ControllerPublishVolumeRequest, error) {
	spec, err := a.volumeSpec(va)
	if err != nil {
		return nil, err
	}
	source := spec.CSI
	if source == nil || source.Driver != a.driver {
		return nil, fmt.Errorf("the volume is not one of %s", a.driver)
	}
	capability, err := volumeCapability(spec)
	if err != nil {
		return nil, err
	}
	// Readonly stays unset: only drivers with PUBLISH_READONLY may be asked for it, EBS's is not
	// one of them, and kubelet mounts read-only by itself.
	return &csi.ControllerPublishVolumeRequest{
		VolumeId:         source.VolumeHandle,
		VolumeCapability: capability,
		VolumeContext:    source.VolumeAttributes,
	}, nil
}

// volumeSpec is the volume as CSI has it, whatever it was when it was stored.
func (a *attacher) volumeSpec(va *storage.VolumeAttachment) (*core.PersistentVolumeSpec, error) {
	source := va.Spec.Source
	if source.InlineVolumeSpec != nil {
		return source.InlineVolumeSpec, nil
	}
	if source.PersistentVolumeName == nil {
		return nil, errors.New("the attachment names no volume")
	}
	pv, err := a.volumes.Get(*source.PersistentVolumeName)
	if err != nil {
		return nil, fmt.Errorf("its PersistentVolume: %v", err)
	}
	if translator := translation.New(); translator.IsPVMigratable(pv) {
		pv, err = translator.TranslateInTreePVToCSI(klog.Background(), pv)
		if err != nil {
			return nil, err
		}
	}
	return &pv.Spec, nil
}

func volumeCapability(spec *core.PersistentVolumeSpec) (*csi.VolumeCapability, error) {
	mode, err := accessMode(spec.AccessModes)
	if err != nil {
		return nil, err
	}
	capability := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode}}
	if spec.VolumeMode != nil && *spec.VolumeMode == core.PersistentVolumeBlock {
		capability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	} else {
		capability.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{
			FsType:     spec.CSI.FSType,
			MountFlags: spec.MountOptions,
		}}
	}
	return capability, nil
}

// accessMode is the one mode of CSI's that allows all that a volume's modes allow.
func accessMode(modes []core.PersistentVolumeAccessMode) (csi.VolumeCapability_AccessMode_Mode, error) {
	many := slices.Contains(modes, core.ReadOnlyMany)
	once := slices.Contains(modes, core.ReadWriteOnce) || slices.Contains(modes, core.ReadWriteOncePod)
	switch {
	case slices.Contains(modes, core.ReadWriteMany):
		return csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, nil
	case many && once:
		return 0, errors.New("CSI has no access mode for ReadWriteOnce and ReadOnlyMany at once")
	case many:
		return csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY, nil
	case once:
		return csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, nil
	}
	return 0, fmt.Errorf("the access modes %v are not known", modes)
}
