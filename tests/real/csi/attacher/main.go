// Command attacher does for one CSI driver what external-attacher does: it turns VolumeAttachments
// into ControllerPublishVolume and ControllerUnpublishVolume.
//
// Left out is what no EBS volume needs: secrets, leader election, drivers that attach nothing.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "file that says how to reach the cluster")
	address := flag.String("csi-address", "", "path of the driver's socket")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, *kubeconfig, *address); err != nil {
		klog.Fatal(err)
	}
}

func run(ctx context.Context, kubeconfig, address string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	connection, err := grpc.NewClient("unix:"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	// The driver may be started after its attacher.
	info, err := csi.NewIdentityClient(connection).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 10*time.Minute)
	a := newAttacher(info.GetName(), client, csi.NewControllerClient(connection), factory)
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	klog.Infof("attaching volumes of %s", a.driver)
	a.work(ctx)
	factory.Shutdown()
	return nil
}
