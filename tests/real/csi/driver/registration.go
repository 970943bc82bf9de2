package main

import (
	"context"
	"log"

	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// registration introduces the driver to kubelet, which is otherwise a sidecar's work.
type registration struct {
	registerapi.UnimplementedRegistrationServer
	name, endpoint string
}

func (r *registration) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{
		Type:     registerapi.CSIPlugin,
		Name:     r.name,
		Endpoint: r.endpoint,
		// The version of the registration, not of CSI: kubelet wants a 1.x.
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (r *registration) NotifyRegistrationStatus(_ context.Context, status *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	if status.GetPluginRegistered() {
		log.Print("registered with kubelet")
	} else {
		log.Printf("kubelet refused the registration: %s", status.GetError())
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}
