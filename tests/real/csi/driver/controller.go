package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	gib = int64(1) << 30
	// maxVolumes is how many device names there are for a node's volumes.
	maxVolumes = 25
	// devicePath is the key under which nodes are told a volume's device.
	devicePath = "devicePath"
)

// controller holds its lock while it looks and then acts: moto lets a second attachment overwrite
// the first, and EC2 lets two volumes bear one name.
type controller struct {
	csi.UnimplementedControllerServer
	sync.Mutex
	cloud *cloud
	zone  string
}

func (c *controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, kind := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
	} {
		response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: kind}},
		})
	}
	return response, nil
}

func (c *controller) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if err := cmp.Or(present("name", request.GetName()), usable(request.GetVolumeCapabilities()...)); err != nil {
		return nil, err
	}
	if request.GetVolumeContentSource() != nil {
		return nil, status.Error(codes.InvalidArgument, "volumes are created empty only")
	}
	size, err := sizeInGiB(request.GetCapacityRange())
	if err != nil {
		return nil, err
	}
	zones, err := c.zones(request.GetAccessibilityRequirements())
	if err != nil {
		return nil, err
	}
	c.Lock()
	defer c.Unlock()
	existing, err := c.cloud.filter(ctx, "tag:"+nameTag, request.GetName())
	if err != nil {
		return nil, err
	}
	if len(existing) > 0 {
		if !fits(existing[0], request.GetCapacityRange()) || !slices.Contains(zones, existing[0].Zone) {
			return nil, status.Errorf(codes.AlreadyExists, "%s is %s: %d GiB in %s",
				request.GetName(), existing[0].ID, existing[0].GiB, existing[0].Zone)
		}
		return created(existing[0]), nil
	}
	kind := cmp.Or(request.GetParameters()["type"], "gp3")
	fresh, err := c.cloud.create(ctx, request.GetName(), kind, zones[0], size)
	if err != nil {
		return nil, err
	}
	return created(fresh), nil
}

func created(v volume) *csi.CreateVolumeResponse {
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId:           v.ID,
		CapacityBytes:      v.GiB * gib,
		AccessibleTopology: []*csi.Topology{inZone(v.Zone)},
	}}
}

func (c *controller) DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if err := present("volume id", request.GetVolumeId()); err != nil {
		return nil, err
	}
	err := c.cloud.remove(ctx, request.GetVolumeId())
	if err != nil && status.Code(err) != codes.NotFound {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, nil
}

func (c *controller) ControllerPublishVolume(ctx context.Context, request *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	id, instance := request.GetVolumeId(), request.GetNodeId()
	if err := cmp.Or(present("volume id", id), present("node id", instance), usable(request.GetVolumeCapability())); err != nil {
		return nil, err
	}
	c.Lock()
	defer c.Unlock()
	found, err := c.cloud.find(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, held := range found.Attachments {
		if held.Instance != instance {
			return nil, status.Errorf(codes.FailedPrecondition, "%s is attached to %s", id, held.Instance)
		}
		return published(held.Device), nil
	}
	device, err := c.freeDevice(ctx, instance)
	if err != nil {
		return nil, err
	}
	return published(device), c.cloud.attach(ctx, id, instance, device)
}

func published(device string) *csi.ControllerPublishVolumeResponse {
	return &csi.ControllerPublishVolumeResponse{PublishContext: map[string]string{devicePath: device}}
}

func (c *controller) freeDevice(ctx context.Context, instance string) (string, error) {
	held, err := c.cloud.filter(ctx, "attachment.instance-id", instance)
	if err != nil {
		return "", err
	}
	taken := map[string]bool{}
	for _, v := range held {
		for _, a := range v.Attachments {
			taken[a.Device] = true
		}
	}
	for i := range maxVolumes {
		if device := fmt.Sprintf("/dev/xvdb%c", 'b'+i); !taken[device] {
			return device, nil
		}
	}
	return "", status.Errorf(codes.ResourceExhausted, "%s holds %d volumes, no more are possible", instance, maxVolumes)
}

func (c *controller) ControllerUnpublishVolume(ctx context.Context, request *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	id := request.GetVolumeId()
	if err := present("volume id", id); err != nil {
		return nil, err
	}
	c.Lock()
	defer c.Unlock()
	found, err := c.cloud.find(ctx, id)
	if err != nil && status.Code(err) != codes.NotFound {
		return nil, err
	}
	for _, held := range found.Attachments {
		// No node id means every node.
		if request.GetNodeId() != "" && request.GetNodeId() != held.Instance {
			continue
		}
		if err := c.cloud.detach(ctx, id, held.Instance); err != nil {
			return nil, err
		}
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

func (c *controller) ValidateVolumeCapabilities(ctx context.Context, request *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if err := present("volume id", request.GetVolumeId()); err != nil {
		return nil, err
	}
	if len(request.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "no volume capabilities given")
	}
	if _, err := c.cloud.find(ctx, request.GetVolumeId()); err != nil {
		return nil, err
	}
	if err := usable(request.GetVolumeCapabilities()...); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: status.Convert(err).Message()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext:      request.GetVolumeContext(),
		VolumeCapabilities: request.GetVolumeCapabilities(),
		Parameters:         request.GetParameters(),
	}}, nil
}

func (c *controller) ControllerExpandVolume(ctx context.Context, request *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	if err := present("volume id", request.GetVolumeId()); err != nil {
		return nil, err
	}
	if request.GetCapacityRange() == nil {
		return nil, status.Error(codes.InvalidArgument, "no capacity range given")
	}
	size, err := sizeInGiB(request.GetCapacityRange())
	if err != nil {
		return nil, err
	}
	c.Lock()
	defer c.Unlock()
	found, err := c.cloud.find(ctx, request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if found.GiB < size {
		if err := c.cloud.resize(ctx, found.ID, size); err != nil {
			return nil, err
		}
	}
	// A directory has no file system of its own that a node would have to grow.
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: max(size, found.GiB) * gib}, nil
}

// zones are those a volume may be in, the best one first.
func (c *controller) zones(wanted *csi.TopologyRequirement) ([]string, error) {
	places := slices.Concat(wanted.GetPreferred(), wanted.GetRequisite())
	if len(places) == 0 {
		return []string{c.zone}, nil
	}
	var zones []string
	for _, place := range places {
		if zone := place.GetSegments()[topologyKey]; zone != "" {
			zones = append(zones, zone)
		}
	}
	if len(zones) == 0 {
		return nil, status.Errorf(codes.ResourceExhausted, "none of the topologies has %s", topologyKey)
	}
	return zones, nil
}

// usable says whether a volume can be used in all of these ways; a directory cannot be a block
// device, nor an EBS volume with a file system on several nodes.
func usable(capabilities ...*csi.VolumeCapability) error {
	if len(capabilities) == 0 {
		return status.Error(codes.InvalidArgument, "no volume capabilities given")
	}
	for _, capability := range capabilities {
		if capability.GetMount() == nil {
			return status.Error(codes.InvalidArgument, "the volume capability must be a mount")
		}
		if mode := capability.GetAccessMode().GetMode(); mode != csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER {
			return status.Errorf(codes.InvalidArgument, "the access mode %s is not supported", mode)
		}
	}
	return nil
}

func sizeInGiB(wanted *csi.CapacityRange) (int64, error) {
	required, limit := wanted.GetRequiredBytes(), wanted.GetLimitBytes()
	if required < 0 || limit < 0 {
		return 0, status.Error(codes.InvalidArgument, "a capacity cannot be negative")
	}
	size := max(1, required/gib)
	if size*gib < required {
		size++
	}
	if limit > 0 && size*gib > limit {
		return 0, status.Errorf(codes.OutOfRange, "%d GiB is the least for %d bytes, over the limit of %d", size, required, limit)
	}
	return size, nil
}

func fits(v volume, wanted *csi.CapacityRange) bool {
	size, limit := v.GiB*gib, wanted.GetLimitBytes()
	return size >= wanted.GetRequiredBytes() && (limit == 0 || size <= limit)
}

func present(what, value string) error {
	if value == "" {
		return status.Errorf(codes.InvalidArgument, "no %s given", what)
	}
	return nil
}
