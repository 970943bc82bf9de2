package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// node keeps each disk as a folder under state and binds it where it is wanted.
type node struct {
	csi.UnimplementedNodeServer
	id, zone, state string
}

func (n *node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{Capabilities: []*csi.NodeServiceCapability{{
		Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{
			Type: csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		}},
	}}}, nil
}

func (n *node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{
		NodeId:             n.id,
		MaxVolumesPerNode:  maxVolumes,
		AccessibleTopology: inZone(n.zone),
	}, nil
}

func (n *node) NodeStageVolume(_ context.Context, request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	disk, err := n.disk(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	staging := request.GetStagingTargetPath()
	if err := cmp.Or(
		present("staging target path", staging),
		usable(request.GetVolumeCapability()),
		// Without a device nobody attached the volume, and a folder would hide that.
		present(devicePath+" in the publish context", request.GetPublishContext()[devicePath]),
	); err != nil {
		return nil, err
	}
	if shows(staging, disk) {
		return &csi.NodeStageVolumeResponse{}, nil
	}
	if err := os.MkdirAll(disk, 0o755); err != nil {
		return nil, failed("staging "+request.GetVolumeId(), err)
	}
	return &csi.NodeStageVolumeResponse{}, failed("staging "+request.GetVolumeId(), bind(disk, staging, false))
}

// NodeUnstageVolume leaves the staging folder to the orchestrator, who made it.
func (n *node) NodeUnstageVolume(_ context.Context, request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	id, staging := request.GetVolumeId(), request.GetStagingTargetPath()
	if err := cmp.Or(present("volume id", id), present("staging target path", staging)); err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, failed("unstaging "+id, unbind(staging))
}

func (n *node) NodePublishVolume(_ context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	disk, err := n.disk(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	staging, target := request.GetStagingTargetPath(), request.GetTargetPath()
	if err := cmp.Or(present("target path", target), usable(request.GetVolumeCapability())); err != nil {
		return nil, err
	}
	if staging == "" || !shows(staging, disk) {
		return nil, status.Errorf(codes.FailedPrecondition, "%s is not staged at %q", request.GetVolumeId(), staging)
	}
	if shows(target, disk) {
		if readOnly(target) != request.GetReadonly() {
			return nil, status.Errorf(codes.AlreadyExists, "%s is published at %s, with another readonly", request.GetVolumeId(), target)
		}
		return &csi.NodePublishVolumeResponse{}, nil
	}
	return &csi.NodePublishVolumeResponse{}, failed("publishing "+request.GetVolumeId(), bind(staging, target, request.GetReadonly()))
}

func (n *node) NodeUnpublishVolume(_ context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	id, target := request.GetVolumeId(), request.GetTargetPath()
	if err := cmp.Or(present("volume id", id), present("target path", target)); err != nil {
		return nil, err
	}
	err := unbind(target)
	if err == nil {
		err = os.Remove(target)
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return &csi.NodeUnpublishVolumeResponse{}, failed("unpublishing "+id, err)
}

// disk is the folder of a volume; an id that would lead out of the state folder is none.
func (n *node) disk(id string) (string, error) {
	if id == "" || id == "." || id == ".." || id != filepath.Base(id) {
		return "", status.Errorf(codes.InvalidArgument, "%q is not a volume id", id)
	}
	return filepath.Join(n.state, id), nil
}

// shows says whether a path is the disk under another name, which only a mount can make it.
func shows(path, disk string) bool {
	there, err := os.Stat(path)
	if err != nil {
		return false
	}
	here, err := os.Stat(disk)
	return err == nil && os.SameFile(here, there)
}

func readOnly(path string) bool {
	var facts unix.Statfs_t
	return unix.Statfs(path, &facts) == nil && facts.Flags&unix.ST_RDONLY != 0
}

func bind(source, target string, readonly bool) error {
	if err := os.MkdirAll(target, 0o750); err != nil {
		return err
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if !readonly {
		return nil
	}
	// Linux takes the flags of a bind mount in a second step only.
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return errors.Join(err, unbind(target))
	}
	return nil
}

// unbind takes away whatever is mounted there; nothing, or no such path, is as good.
func unbind(path string) error {
	for {
		err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
		switch {
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
			return nil
		case err != nil:
			return err
		}
	}
}

// failed is no error if there was none.
func failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return status.Errorf(codes.Internal, "%s failed: %v", what, err)
}
