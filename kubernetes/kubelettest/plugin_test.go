package kubelettest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// TestDevicePlugin runs urdma-kubelet with two resources, without a kubelet at first; urdmad starts, is killed and
// starts again; kubelet restarts.
func TestDevicePlugin(t *testing.T) {
	l := newLab(t)
	urdmad, socket := loopback(t, l)
	k := New(t, filepath.Join(l.Dir, "kubelet"))
	resources := []string{"rdma/hca_shared_devices_a", "rdma/urdma"}
	kubelet := start(t, l, program(t), "--socket", socket, "--kubelet", k.Dir, "--count", "3",
		"--resource", resources[0], "--resource", resources[1],
		"--specification", specification(t, l), "--library", filepath.Join(l.Dir, "library"), "--cdi", filepath.Join(l.Dir, "cdi"))
	k.Start()
	registered := func() (plugins []*Plugin) {
		var names []string
		for range resources {
			plugins = append(plugins, k.Registered())
			names = append(names, plugins[len(plugins)-1].Resource)
		}
		if slices.Sort(names); !slices.Equal(names, resources) {
			t.Fatalf("registered are %v", names)
		}
		return plugins
	}
	each := func(plugins []*Plugin, health string) {
		t.Helper()
		for _, p := range plugins {
			p.Await(health, count)
		}
	}
	plugins := registered()
	each(plugins, api.Unhealthy)
	daemon := urdmad()
	each(plugins, api.Healthy)
	for _, p := range plugins {
		if got := p.Devices("0", "2"); !slices.Equal(got, []string{"urdma.dev/urdmad=node"}) {
			t.Errorf("%s: allocated are the CDI devices %q", p.Resource, got)
		}
	}
	for _, id := range []string{"3", "-1", "x"} {
		_, err := plugins[0].Allocate(t.Context(),
			&api.AllocateRequest{ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: []string{id}}}})
		if status.Code(err) != codes.NotFound {
			t.Errorf("device %q: %v", id, err)
		}
	}
	daemon.Kill()
	each(plugins, api.Unhealthy)
	urdmad()
	each(plugins, api.Healthy)

	k.Stop()
	k.Start()
	again := registered()
	each(again, api.Healthy)
	for _, p := range plugins {
		p.Gone()
	}
	end(t, kubelet)
	left, err := os.ReadDir(filepath.Join(k.Dir, "device-plugins"))
	if err != nil || len(left) != 1 {
		t.Errorf("kubelet's directory has %v, expected only its own socket: %v", left, err)
	}
	if !strings.Contains(kubelet.Output(), "kubelet has restarted") {
		t.Errorf("log:\n%s", kubelet.Output())
	}
}
