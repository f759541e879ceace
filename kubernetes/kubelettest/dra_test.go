package kubelettest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"

	"urdma/kubernetes/dra"
)

// newCluster is an API server of client-go's own, with a node and an allocated claim.
func newCluster() *fake.Clientset {
	client := fake.NewClientset(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}},
		&resourceapi.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: "default", UID: "2"},
			Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{
				Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{
					{Request: "other", Driver: "other.example", Pool: "a", Device: "x"},
					{Request: "rdma", Driver: dra.Name, Pool: "a", Device: "rdma-1"},
				}}}},
		})
	var names atomic.Int64
	client.PrependReactor("create", "*", func(a ktesting.Action) (bool, runtime.Object, error) {
		if m, ok := a.(ktesting.CreateAction).GetObject().(metav1.Object); ok && m.GetName() == "" {
			m.SetName(fmt.Sprintf("%s%d", m.GetGenerateName(), names.Add(1)))
		}
		return false, nil, nil
	})
	return client
}

// awaitDevices waits until the node's slices have that many devices in one complete pool.
func awaitDevices(t *testing.T, client *fake.Clientset, want int) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		slices, err := client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		devices := 0
		for _, s := range slices.Items {
			if s.Spec.Driver != dra.Name || s.Spec.Pool.Name != "a" || s.Spec.NodeName == nil || *s.Spec.NodeName != "a" {
				t.Fatalf("slice of another pool: %+v", s.Spec)
			}
			devices += len(s.Spec.Devices)
		}
		if len(slices.Items) > 0 && devices == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d slices with %d devices, expected %d devices", len(slices.Items), devices, want)
		}
	}
}

// TestDRA runs the driver: ResourceSlices follow urdmad's state, and a claim's preparation names the CDI device.
func TestDRA(t *testing.T) {
	l := newLab(t)
	urdmad, socket := loopback(t, l)
	k := New(t, filepath.Join(l.Dir, "kubelet"))
	client := newCluster()
	const devices = resourceapi.ResourceSliceMaxDevices + 1 // two slices
	d := &dra.Driver{Node: "a", Count: devices, Device: "urdma.dev/urdmad=node", Kubelet: k.Dir, Client: client,
		Daemon: observe(t, socket), Log: t.Logf}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	plugin := k.Driver(dra.Name)
	awaitDevices(t, client, 0)
	daemon := urdmad()
	awaitDevices(t, client, devices)

	claims := []*drapb.Claim{{Namespace: "default", Name: "claim", Uid: "2"}}
	prepare := func() *drapb.NodePrepareResourceResponse {
		t.Helper()
		answer, err := plugin.NodePrepareResources(t.Context(), &drapb.NodePrepareResourcesRequest{Claims: claims})
		if err != nil || answer.Claims["2"] == nil {
			t.Fatalf("%v: %v", answer, err)
		}
		return answer.Claims["2"]
	}
	for range 2 { // kubelet may repeat it
		got := prepare()
		if got.Error != "" || len(got.Devices) != 1 || !slices.Equal(got.Devices[0].RequestNames, []string{"rdma"}) ||
			got.Devices[0].DeviceName != "rdma-1" || got.Devices[0].PoolName != "a" ||
			!slices.Equal(got.Devices[0].CdiDeviceIds, []string{"urdma.dev/urdmad=node"}) {
			t.Errorf("prepared %v", got)
		}
	}
	daemon.Kill()
	awaitDevices(t, client, 0)
	if got := prepare(); !strings.Contains(got.Error, "urdmad of node a") {
		t.Errorf("without urdmad: %v", got)
	}
	answer, err := plugin.NodeUnprepareResources(t.Context(), &drapb.NodeUnprepareResourcesRequest{Claims: claims})
	if err != nil || answer.Claims["2"] == nil || answer.Claims["2"].Error != "" {
		t.Errorf("unprepared: %v: %v", answer, err)
	}
}
