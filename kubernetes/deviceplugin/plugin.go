// Package deviceplugin hands out urdmad as devices of a resource, by kubelet's device plugin API (v1beta1). All
// devices of a node are the same urdmad; their number only limits how many containers share it.
package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"urdma/kubernetes/daemon"
)

// interval is the time between two looks for another kubelet, and between two attempts to register.
const interval = time.Second

// Plugin is the plugin of one resource.
type Plugin struct {
	Resource  string // such as rdma/urdma
	Count     int    // number of devices
	Device    string // qualified name of the CDI device
	Directory string // kubelet's directory of device plugins, with its socket
	Daemon    *daemon.Observer
	Log       func(format string, args ...any)

	api.UnimplementedDevicePluginServer
}

// Run serves kubelet until ctx ends. It registers with kubelet, and again with each later kubelet, which begins by
// removing the plugins' sockets. Without a kubelet it waits for one.
func (p *Plugin) Run(ctx context.Context) error {
	last := ""
	for {
		err := p.serve(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, errOurs) {
			return err
		}
		if err != nil && err.Error() != last {
			last = err.Error()
			p.Log("%s: %v; trying again", p.Resource, err)
		}
		if err == nil {
			last = ""
			p.Log("%s: kubelet has restarted", p.Resource)
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval):
		}
	}
}

// errOurs marks an error that another attempt does not mend.
var errOurs = errors.New("kubelet's directory can't be used")

// socket is the plugin's, one for each resource.
func (p *Plugin) socket() string {
	return filepath.Join(p.Directory, "urdma-"+strings.ReplaceAll(p.Resource, "/", "-")+".sock")
}

func (p *Plugin) kubelet() string {
	return filepath.Join(p.Directory, filepath.Base(api.KubeletSocket))
}

// serve serves one kubelet, and returns nil when there is another.
func (p *Plugin) serve(ctx context.Context) error {
	was, err := os.Stat(p.kubelet())
	if err != nil {
		return fmt.Errorf("no kubelet: %w", err)
	}
	if err := os.Remove(p.socket()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errOurs, err)
	}
	l, err := net.Listen("unix", p.socket())
	if err != nil {
		return fmt.Errorf("%w: %w", errOurs, err)
	}
	ours, err := os.Stat(p.socket())
	if err != nil {
		l.Close()
		return err
	}
	s := grpc.NewServer()
	api.RegisterDevicePluginServer(s, p)
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	defer s.Stop() // also closes the listener, which removes the socket
	if err := p.register(ctx); err != nil {
		return fmt.Errorf("registering: %w", err)
	}
	p.Log("%s: registered %d devices with kubelet", p.Resource, p.Count)
	for tick := time.NewTicker(interval); ; {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return fmt.Errorf("serving kubelet: %w", err)
		case <-tick.C:
		}
		if !same(p.socket(), ours) || !same(p.kubelet(), was) {
			return nil
		}
	}
}

// same reports whether the file at path is still that one. Numbers of inodes are used again, hence the time.
func same(path string, was fs.FileInfo) bool {
	is, err := os.Stat(path)
	return err == nil && os.SameFile(is, was) && is.ModTime().Equal(was.ModTime())
}

func (p *Plugin) register(ctx context.Context) error {
	c, err := grpc.NewClient("unix://"+p.kubelet(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err = api.NewRegistrationClient(c).Register(ctx, &api.RegisterRequest{
		Version:      api.Version,
		Endpoint:     filepath.Base(p.socket()),
		ResourceName: p.Resource,
		Options:      &api.DevicePluginOptions{},
	})
	return err
}

// GetDevicePluginOptions says that kubelet calls nothing but ListAndWatch and Allocate.
func (p *Plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

// ListAndWatch sends all devices, and again when urdmad begins or ceases to answer.
func (p *Plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	for {
		state, changed := p.Daemon.State()
		health := api.Healthy
		if !state.Healthy() {
			health = api.Unhealthy
		}
		list := &api.ListAndWatchResponse{}
		for i := range p.Count {
			list.Devices = append(list.Devices, &api.Device{ID: strconv.Itoa(i), Health: health})
		}
		if err := stream.Send(list); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-changed:
		}
	}
}

// Allocate gives each container the CDI device, once however many devices it gets.
func (p *Plugin) Allocate(_ context.Context, r *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, c := range r.ContainerRequests {
		for _, id := range c.DevicesIds {
			if i, err := strconv.Atoi(id); err != nil || i < 0 || i >= p.Count {
				return nil, status.Errorf(codes.NotFound, "%s has no device %q, expected 0 to %d", p.Resource, id, p.Count-1)
			}
		}
		answer.ContainerResponses = append(answer.ContainerResponses,
			&api.ContainerAllocateResponse{CdiDevices: []*api.CDIDevice{{Name: p.Device}}})
	}
	return answer, nil
}
