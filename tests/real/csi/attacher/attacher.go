package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	core "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	// nodeIDAnnotation remembers the driver's name for a node whose CSINode may go first.
	nodeIDAnnotation = "csi.alpha.kubernetes.io/node-id"
	callTimeout      = 15 * time.Second
)

type attacher struct {
	driver, finalizer string
	client            kubernetes.Interface
	csi               csi.ControllerClient
	queue             workqueue.TypedRateLimitingInterface[item]
	attachments       storagelisters.VolumeAttachmentLister
	nodes             storagelisters.CSINodeLister
	volumes           corelisters.PersistentVolumeLister
}

// item is something to look at: a VolumeAttachment, or a PersistentVolume that may be let go.
type item struct {
	isVolume bool
	name     string
}

func newAttacher(driver string, client kubernetes.Interface, controller csi.ControllerClient, factory informers.SharedInformerFactory) *attacher {
	a := &attacher{
		driver:    driver,
		finalizer: "external-attacher/" + regexp.MustCompile("[^a-z0-9-]").ReplaceAllString(driver, "-"),
		client:    client,
		csi:       controller,
		// Shorter at its longest than the original's five minutes: tests wait for it.
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[item](time.Second, 30*time.Second)),
		attachments: factory.Storage().V1().VolumeAttachments().Lister(),
		nodes:       factory.Storage().V1().CSINodes().Lister(),
		volumes:     factory.Core().V1().PersistentVolumes().Lister(),
	}
	factory.Storage().V1().VolumeAttachments().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { a.queue.Add(item{name: name(object)}) },
		UpdateFunc: a.attachmentUpdated,
		DeleteFunc: a.attachmentDeleted,
	})
	factory.Core().V1().PersistentVolumes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { a.queue.Add(item{isVolume: true, name: name(object)}) },
		UpdateFunc: func(_, object any) { a.queue.Add(item{isVolume: true, name: name(object)}) },
	})
	return a
}

func name(object any) string {
	key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	return key
}

// attachmentUpdated passes over what the attacher wrote itself: an error written down would else
// be the reason to try again at once, and there would be no back-off.
func (a *attacher) attachmentUpdated(before, after any) {
	old, now := before.(*storage.VolumeAttachment), after.(*storage.VolumeAttachment)
	resync := old.ResourceVersion == now.ResourceVersion
	if resync || old.UID != now.UID || old.DeletionTimestamp.IsZero() != now.DeletionTimestamp.IsZero() {
		a.queue.Add(item{name: now.Name})
	}
}

func (a *attacher) attachmentDeleted(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	if va, ok := object.(*storage.VolumeAttachment); ok && va.Spec.Source.PersistentVolumeName != nil {
		a.queue.Add(item{isVolume: true, name: *va.Spec.Source.PersistentVolumeName})
	}
}

// work takes items until the context ends.
func (a *attacher) work(ctx context.Context) {
	defer context.AfterFunc(ctx, a.queue.ShutDown)()
	for {
		next, closed := a.queue.Get()
		if closed {
			return
		}
		sync := a.syncAttachment
		if next.isVolume {
			sync = a.syncVolume
		}
		if err := sync(ctx, next.name); err != nil {
			klog.Errorf("%s: %v", next.name, err)
			a.queue.AddRateLimited(next)
		} else {
			a.queue.Forget(next)
		}
		a.queue.Done(next)
	}
}

func (a *attacher) syncAttachment(ctx context.Context, name string) error {
	va, err := a.attachments.Get(name)
	switch {
	case err != nil:
		return ignoreNotFound(err)
	case va.Spec.Attacher != a.driver:
		return nil
	case va.DeletionTimestamp != nil:
		return a.syncDetach(ctx, va)
	case va.Status.Attached:
		return nil
	}
	return a.syncAttach(ctx, va)
}

func (a *attacher) syncAttach(ctx context.Context, va *storage.VolumeAttachment) error {
	va, metadata, err := a.attach(ctx, va)
	if err != nil {
		return a.complain(ctx, va, "attachError", err)
	}
	klog.Infof("%s: attached", va.Name)
	_, err = a.patchStatus(ctx, va, map[string]any{"attached": true, "attachmentMetadata": metadata, "attachError": nil})
	return err
}

// attach gives back the attachment as it is after the finalizer, for the write that follows.
func (a *attacher) attach(ctx context.Context, va *storage.VolumeAttachment) (*storage.VolumeAttachment, map[string]string, error) {
	if err := a.holdVolume(ctx, va); err != nil {
		return va, nil, err
	}
	request, err := a.publishRequest(va)
	if err != nil {
		return va, nil, err
	}
	request.NodeId, err = a.nodeID(va)
	if err != nil {
		return va, nil, err
	}
	held, err := a.holdAttachment(ctx, va, request.NodeId)
	if err != nil {
		return va, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := a.csi.ControllerPublishVolume(ctx, request)
	return held, response.GetPublishContext(), err
}

func (a *attacher) syncDetach(ctx context.Context, va *storage.VolumeAttachment) error {
	if !slices.Contains(va.Finalizers, a.finalizer) {
		return nil
	}
	if err := a.detach(ctx, va); err != nil {
		return a.complain(ctx, va, "detachError", err)
	}
	klog.Infof("%s: detached", va.Name)
	va, err := a.patchStatus(ctx, va, map[string]any{"attached": false, "attachmentMetadata": nil, "detachError": nil})
	if err != nil {
		return err
	}
	_, err = a.patchAttachment(ctx, va, map[string]any{"finalizers": without(va.Finalizers, a.finalizer)})
	return err
}

func (a *attacher) detach(ctx context.Context, va *storage.VolumeAttachment) error {
	request, err := a.publishRequest(va)
	if err != nil {
		return err
	}
	node, err := a.nodeID(va)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = a.csi.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: request.VolumeId, NodeId: node})
	return err
}

// complain writes the error down and gives it back, so that it is tried again.
func (a *attacher) complain(ctx context.Context, va *storage.VolumeAttachment, field string, problem error) error {
	_, err := a.patchStatus(ctx, va, map[string]any{field: storage.VolumeError{Time: meta.Now(), Message: problem.Error()}})
	if err != nil {
		klog.Errorf("%s: the %s could not be written: %v", va.Name, field, err)
	}
	return problem
}

// nodeID is the driver's own name for the node.
func (a *attacher) nodeID(va *storage.VolumeAttachment) (string, error) {
	node, err := a.nodes.Get(va.Spec.NodeName)
	if err == nil {
		for _, driver := range node.Spec.Drivers {
			if driver.Name == a.driver {
				return driver.NodeID, nil
			}
		}
	}
	if id := va.Annotations[nodeIDAnnotation]; id != "" {
		return id, nil
	}
	if err == nil {
		err = fmt.Errorf("the CSINode %s has no driver %s", va.Spec.NodeName, a.driver)
	}
	return "", err
}

// holdVolume keeps the PersistentVolume, without which nobody would know what to detach.
func (a *attacher) holdVolume(ctx context.Context, va *storage.VolumeAttachment) error {
	if va.Spec.Source.PersistentVolumeName == nil {
		return nil
	}
	pv, err := a.volumes.Get(*va.Spec.Source.PersistentVolumeName)
	switch {
	case err != nil:
		return fmt.Errorf("its PersistentVolume: %v", err)
	case slices.Contains(pv.Finalizers, a.finalizer):
		return nil
	case pv.DeletionTimestamp != nil:
		return fmt.Errorf("the PersistentVolume %s is being deleted", pv.Name)
	}
	return a.patchVolume(ctx, pv, append(slices.Clone(pv.Finalizers), a.finalizer))
}

// ignoreNotFound is for the object itself: one that is gone needs no more work.
func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// syncVolume lets go of a PersistentVolume that is being deleted and attached nowhere.
func (a *attacher) syncVolume(ctx context.Context, name string) error {
	pv, err := a.volumes.Get(name)
	if err != nil || pv.DeletionTimestamp == nil || !slices.Contains(pv.Finalizers, a.finalizer) {
		return ignoreNotFound(err)
	}
	all, err := a.attachments.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, va := range all {
		if used := va.Spec.Source.PersistentVolumeName; va.Spec.Attacher == a.driver && used != nil && *used == name {
			return nil
		}
	}
	return a.patchVolume(ctx, pv, without(pv.Finalizers, a.finalizer))
}

func (a *attacher) holdAttachment(ctx context.Context, va *storage.VolumeAttachment, node string) (*storage.VolumeAttachment, error) {
	if slices.Contains(va.Finalizers, a.finalizer) && va.Annotations[nodeIDAnnotation] == node {
		return va, nil
	}
	return a.patchAttachment(ctx, va, map[string]any{
		"finalizers":  append(without(va.Finalizers, a.finalizer), a.finalizer),
		"annotations": map[string]string{nodeIDAnnotation: node},
	})
}

func without(finalizers []string, gone string) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == gone })
}

func (a *attacher) patchVolume(ctx context.Context, pv *core.PersistentVolume, finalizers []string) error {
	patch := mergePatch(pv.ResourceVersion, map[string]any{"finalizers": finalizers}, nil)
	_, err := a.client.CoreV1().PersistentVolumes().Patch(ctx, pv.Name, types.MergePatchType, patch, meta.PatchOptions{})
	return err
}

func (a *attacher) patchAttachment(ctx context.Context, va *storage.VolumeAttachment, metadata map[string]any) (*storage.VolumeAttachment, error) {
	patch := mergePatch(va.ResourceVersion, metadata, nil)
	return a.client.StorageV1().VolumeAttachments().Patch(ctx, va.Name, types.MergePatchType, patch, meta.PatchOptions{})
}

func (a *attacher) patchStatus(ctx context.Context, va *storage.VolumeAttachment, status map[string]any) (*storage.VolumeAttachment, error) {
	patch := mergePatch(va.ResourceVersion, map[string]any{}, status)
	return a.client.StorageV1().VolumeAttachments().Patch(ctx, va.Name, types.MergePatchType, patch, meta.PatchOptions{}, "status")
}

// mergePatch holds on to the version it was made from: it replaces whole lists, and a finalizer of
// somebody else's must not get lost in between.
func mergePatch(version string, metadata, status map[string]any) []byte {
	metadata["resourceVersion"] = version
	patch := map[string]any{"metadata": metadata}
	if status != nil {
		patch["status"] = status
	}
	text, err := json.Marshal(patch)
	if err != nil {
		panic(err) // texts, booleans and times only
	}
	return text
}
