// Package kubelettest plays kubelet towards device plugins and DRA drivers: with its directories, sockets, gRPC
// services and calls, from Kubernetes' own definitions. It has neither pods nor a scheduler.
package kubelettest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/util/validation"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// patience is the longest wait for an event.
const patience = time.Minute

// Kubelet is a kubelet that starts and stops.
type Kubelet struct {
	Dir string // its directory

	t             testing.TB
	server        *grpc.Server
	registrations chan *api.RegisterRequest
	api.UnimplementedRegistrationServer
}

// New makes kubelet's directories below dir.
func New(t testing.TB, dir string) *Kubelet {
	t.Helper()
	k := &Kubelet{Dir: dir, t: t}
	for _, name := range []string{"device-plugins", "plugins", "plugins_registry"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(k.Stop)
	return k
}

func (k *Kubelet) plugins() string { return filepath.Join(k.Dir, "device-plugins") }

// Start starts as kubelet does: it removes the sockets of all plugins, then listens.
func (k *Kubelet) Start() {
	k.t.Helper()
	old, err := os.ReadDir(k.plugins())
	for _, file := range old {
		err = errors.Join(err, os.Remove(filepath.Join(k.plugins(), file.Name())))
	}
	if err != nil {
		k.t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(k.plugins(), "kubelet.sock"))
	if err != nil {
		k.t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // a kubelet that ends leaves its socket
	k.registrations = make(chan *api.RegisterRequest, 16)
	k.server = grpc.NewServer()
	api.RegisterRegistrationServer(k.server, k)
	go k.server.Serve(l) // ends with Stop
}

// Stop ends kubelet.
func (k *Kubelet) Stop() {
	if k.server != nil {
		k.server.Stop()
	}
}

// Register checks a plugin's request as kubelet does.
func (k *Kubelet) Register(_ context.Context, r *api.RegisterRequest) (*api.Empty, error) {
	switch wrong := validation.IsQualifiedName(r.ResourceName); {
	case !slices.Contains(api.SupportedVersions[:], r.Version):
		return nil, fmt.Errorf("version %q", r.Version)
	case len(wrong) > 0 || !strings.Contains(r.ResourceName, "/"):
		return nil, fmt.Errorf("resource %q: %v", r.ResourceName, wrong)
	case filepath.Base(r.Endpoint) != r.Endpoint:
		return nil, fmt.Errorf("endpoint %q", r.Endpoint)
	}
	k.registrations <- r
	return &api.Empty{}, nil
}

// Plugin is a registered device plugin.
type Plugin struct {
	api.DevicePluginClient
	Resource string
	t        testing.TB
	lists    chan []*api.Device
}

// Registered waits for the next registration, and watches that plugin's devices.
func (k *Kubelet) Registered() *Plugin {
	k.t.Helper()
	select {
	case r := <-k.registrations:
		p := &Plugin{DevicePluginClient: api.NewDevicePluginClient(dial(k.t, filepath.Join(k.plugins(), r.Endpoint))),
			Resource: r.ResourceName, t: k.t, lists: make(chan []*api.Device, 16)}
		if _, err := p.GetDevicePluginOptions(k.t.Context(), &api.Empty{}); err != nil {
			k.t.Fatal(err)
		}
		stream, err := p.ListAndWatch(k.t.Context(), &api.Empty{})
		if err != nil {
			k.t.Fatal(err)
		}
		go func() {
			defer close(p.lists)
			for list, err := stream.Recv(); err == nil; list, err = stream.Recv() {
				p.lists <- list.Devices
			}
		}()
		return p
	case <-time.After(patience):
		k.t.Fatal("no plugin registers")
		return nil
	}
}

// Await waits until all devices, count in number, have that health.
func (p *Plugin) Await(health string, count int) {
	p.t.Helper()
	for end := time.After(patience); ; {
		select {
		case list, ok := <-p.lists:
			if !ok {
				p.t.Fatalf("%s: the plugin has ended its list", p.Resource)
			}
			if len(list) != count {
				p.t.Fatalf("%s: %d devices, expected %d", p.Resource, len(list), count)
			}
			if !slices.ContainsFunc(list, func(d *api.Device) bool { return d.Health != health }) {
				return
			}
		case <-end:
			p.t.Fatalf("%s: the devices do not become %s", p.Resource, health)
		}
	}
}

// Gone waits until the plugin has ended its list.
func (p *Plugin) Gone() {
	p.t.Helper()
	for end := time.After(patience); ; {
		select {
		case _, ok := <-p.lists:
			if !ok {
				return
			}
		case <-end:
			p.t.Fatalf("%s: the plugin goes on", p.Resource)
		}
	}
}

// Devices allocates devices for one container, and returns the names of its CDI devices.
func (p *Plugin) Devices(ids ...string) (names []string) {
	p.t.Helper()
	answer, err := p.Allocate(p.t.Context(),
		&api.AllocateRequest{ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: ids}}})
	if err != nil {
		p.t.Fatal(err)
	}
	if len(answer.ContainerResponses) != 1 {
		p.t.Fatalf("%d responses for one container", len(answer.ContainerResponses))
	}
	for _, d := range answer.ContainerResponses[0].CdiDevices {
		names = append(names, d.Name)
	}
	return names
}

// Driver waits for a DRA driver's registration socket, and registers the driver.
func (k *Kubelet) Driver(name string) drapb.DRAPluginClient {
	k.t.Helper()
	socket := filepath.Join(k.Dir, "plugins_registry", name+"-reg.sock")
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			break
		} else if time.Now().After(end) {
			k.t.Fatalf("no driver registers: %v", err)
		}
	}
	registration := registerapi.NewRegistrationClient(dial(k.t, socket))
	info, err := registration.GetInfo(k.t.Context(), &registerapi.InfoRequest{})
	if err != nil {
		k.t.Fatal(err)
	}
	if info.Type != registerapi.DRAPlugin || info.Name != name ||
		!slices.Contains(info.SupportedVersions, drapb.DRAPluginService) {
		k.t.Fatalf("the driver says of itself %v", info)
	}
	if _, err := registration.NotifyRegistrationStatus(k.t.Context(),
		&registerapi.RegistrationStatus{PluginRegistered: true}); err != nil {
		k.t.Fatal(err)
	}
	return drapb.NewDRAPluginClient(dial(k.t, info.Endpoint))
}

func dial(t testing.TB, socket string) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
