// Command driver is a CSI driver for EBS volumes whose disks are directories.
//
// The cloud is whatever answers EC2's Query API at --ec2; tests give it moto. The node's half makes
// real mounts, so that what kubelet leaves behind is there to be seen. Everything else is what the
// CSI specification asks for, and csi-sanity holds the driver to it.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type options struct {
	name, endpoint, ec2, region, zone, nodeID, state, registration, calls string
}

func main() {
	log.SetPrefix("driver: ")
	var o options
	flag.StringVar(&o.name, "name", "ebs.csi.aws.com", "the name the driver answers to")
	flag.StringVar(&o.endpoint, "endpoint", "", "unix:///path of the socket to serve on")
	flag.StringVar(&o.ec2, "ec2", "", "URL of the EC2 API; without it there is no controller service")
	flag.StringVar(&o.region, "region", "us-east-1", "the region EC2 is asked about")
	flag.StringVar(&o.zone, "zone", "us-east-1a", "where the node is, and volumes that nobody placed")
	flag.StringVar(&o.nodeID, "node-id", "", "the node's instance id; without it there is no node service")
	flag.StringVar(&o.state, "state", "", "folder of the node's disks, one folder per volume")
	flag.StringVar(&o.registration, "registration", "", "kubelet's plugins_registry folder")
	flag.StringVar(&o.calls, "calls", "", "file to append one line of JSON per call to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options) error {
	path, ok := strings.CutPrefix(o.endpoint, "unix://")
	switch {
	case !ok || path == "":
		return errors.New("--endpoint must be unix:///path")
	case o.nodeID != "" && o.state == "":
		return errors.New("--node-id needs --state, the folder its disks live in")
	case o.registration != "" && o.nodeID == "":
		return errors.New("--registration needs --node-id: kubelet registers nodes' drivers only")
	}
	calls, err := openJournal(o.calls, o.nodeID)
	if err != nil {
		return err
	}
	defer calls.Close()

	server := grpc.NewServer(grpc.UnaryInterceptor(calls.intercept))
	csi.RegisterIdentityServer(server, &identity{name: o.name, controller: o.ec2 != ""})
	if o.ec2 != "" {
		csi.RegisterControllerServer(server, &controller{cloud: &cloud{o.ec2, o.region}, zone: o.zone})
	}
	if o.nodeID != "" {
		csi.RegisterNodeServer(server, &node{id: o.nodeID, zone: o.zone, state: o.state})
	}
	sockets := []string{path}
	if o.registration != "" {
		registerapi.RegisterRegistrationServer(server, &registration{name: o.name, endpoint: path})
		sockets = append(sockets, filepath.Join(o.registration, o.name+"-reg.sock"))
	}
	return serve(ctx, server, sockets)
}

// serve answers on every socket until the context ends. All of them listen before any of them
// answers: kubelet calls the driver as soon as the registration has spoken.
func serve(ctx context.Context, server *grpc.Server, sockets []string) error {
	listeners := make([]net.Listener, len(sockets))
	for i, path := range sockets {
		// What a killed driver left behind would refuse the new one its address.
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		listener, err := net.Listen("unix", path)
		if err != nil {
			return err
		}
		defer listener.Close()
		listeners[i] = listener
	}
	failed := make(chan error, len(listeners))
	for _, listener := range listeners {
		go func() { failed <- server.Serve(listener) }()
	}
	log.Printf("serving on %s", strings.Join(sockets, " and "))
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		server.GracefulStop()
		return nil
	}
}
