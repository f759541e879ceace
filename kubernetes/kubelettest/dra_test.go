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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"

	"urdma/kubernetes/dra"
	"urdma/test/lab"
)

// newCluster is an API server of client-go's own, with a node and a claim.
func newCluster(claim *resourceapi.ResourceClaim) *fake.Clientset {
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}, claim)
	var names atomic.Int64
	client.PrependReactor("create", "*", func(a ktesting.Action) (bool, runtime.Object, error) {
		if m, ok := a.(ktesting.CreateAction).GetObject().(metav1.Object); ok && m.GetName() == "" {
			m.SetName(fmt.Sprintf("%s%d", m.GetGenerateName(), names.Add(1)))
		}
		return false, nil, nil
	})
	return client
}

// newClaim is a claim of a device of ours and one of another driver, as the scheduler has allocated them.
func newClaim() *resourceapi.ResourceClaim {
	request := func(name, class, expression string) resourceapi.DeviceRequest {
		return resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class,
			Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}}}
	}
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: "default", UID: "2"},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{
			request("other", "other.example", "true"),
			request("rdma", dra.Name, `device.attributes["urdma.dev"].mtu >= 1500`)}}},
		Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{
			Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{
				{Request: "other", Driver: "other.example", Pool: "a", Device: "x"},
				{Request: "rdma", Driver: dra.Name, Pool: "a", Device: "rdma-1"},
			}}}},
	}
}

// ofNode selects the slices of node a. client-go's API server takes no notice of it.
const ofNode = resourceapi.ResourceSliceSelectorNodeName + "=a"

// awaitDevices waits until the node's slices have that many devices in one complete pool.
func awaitDevices(t *testing.T, client kubernetes.Interface, want int) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		slices, err := client.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{FieldSelector: ofNode})
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

// TestDRA runs the driver with client-go's API server.
func TestDRA(t *testing.T) {
	claim := newClaim()
	client := newCluster(claim)
	testDriver(t, newLab(t), client, client, claim)
}

// testDriver runs the driver of node a with client: ResourceSlices, as observer sees them, follow urdmad's state, and
// a claim's preparation names the CDI device.
func testDriver(t *testing.T, l *lab.Lab, client, observer kubernetes.Interface, claim *resourceapi.ResourceClaim) {
	t.Helper()
	urdmad, socket := loopback(t, l)
	k := New(t, filepath.Join(l.Dir, "kubelet"))
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
	awaitDevices(t, observer, 0)
	daemon := urdmad()
	awaitDevices(t, observer, devices)

	uid := string(claim.UID)
	claims := []*drapb.Claim{{Namespace: claim.Namespace, Name: claim.Name, Uid: uid}}
	prepare := func() *drapb.NodePrepareResourceResponse {
		t.Helper()
		answer, err := plugin.NodePrepareResources(t.Context(), &drapb.NodePrepareResourcesRequest{Claims: claims})
		if err != nil || answer.Claims[uid] == nil {
			t.Fatalf("%v: %v", answer, err)
		}
		return answer.Claims[uid]
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
	awaitDevices(t, observer, 0)
	if got := prepare(); !strings.Contains(got.Error, "urdmad of node a") {
		t.Errorf("without urdmad: %v", got)
	}
	answer, err := plugin.NodeUnprepareResources(t.Context(), &drapb.NodeUnprepareResourcesRequest{Claims: claims})
	if err != nil || answer.Claims[uid] == nil || answer.Claims[uid].Error != "" {
		t.Errorf("unprepared: %v: %v", answer, err)
	}
}
