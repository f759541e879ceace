// Package dra hands out urdmad by dynamic resource allocation: it publishes a ResourceSlice of the node with devices
// that are all the same urdmad, and prepares claims by naming the CDI device. While urdmad does not answer there are
// no devices.
package dra

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"urdma/kubernetes/daemon"
)

// Name is the driver's name, which claims' device classes select.
const Name = "urdma.dev"

// Driver is the driver of one node.
type Driver struct {
	Node    string // name of the node, also of its pool
	Count   int    // number of devices
	Device  string // qualified name of the CDI device
	Kubelet string // kubelet's directory
	Client  kubernetes.Interface
	Daemon  *daemon.Observer
	Log     func(format string, args ...any)
}

// Run serves kubelet, and publishes the node's devices, until ctx ends.
func (d *Driver) Run(ctx context.Context) error {
	data := filepath.Join(d.Kubelet, "plugins", Name)
	if err := os.MkdirAll(data, 0o750); err != nil {
		return err
	}
	helper, err := kubeletplugin.Start(ctx, d, kubeletplugin.DriverName(Name), kubeletplugin.NodeName(d.Node),
		kubeletplugin.KubeClient(d.Client), kubeletplugin.PluginDataDirectoryPath(data),
		kubeletplugin.RegistrarDirectoryPath(filepath.Join(d.Kubelet, "plugins_registry")),
		kubeletplugin.HealthService(false))
	if err != nil {
		return err
	}
	defer helper.Stop()
	for {
		state, changed := d.Daemon.State()
		if err := helper.PublishResources(ctx, d.resources(state)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// resources are the node's devices.
func (d *Driver) resources(state daemon.State) resourceslice.DriverResources {
	var slices []resourceslice.Slice
	var devices []resourceapi.Device
	for i := 0; state.Healthy() && i < d.Count; i++ {
		devices = append(devices, resourceapi.Device{Name: fmt.Sprintf("rdma-%d", i), Attributes: attributes(state)})
		if len(devices) == resourceapi.ResourceSliceMaxDevices {
			slices, devices = append(slices, resourceslice.Slice{Devices: devices}), nil
		}
	}
	if len(devices) > 0 || len(slices) == 0 { // without a slice the pool would be unknown, not empty
		slices = append(slices, resourceslice.Slice{Devices: devices})
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{d.Node: {Slices: slices}}}
}

// attributes describe the first port, by which claims may select devices.
func attributes(state daemon.State) map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	if len(state.Ports) == 0 {
		return nil
	}
	port := &state.Ports[0]
	mtu := int64(port.MTU)
	return map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		"address": {StringValue: &port.Address},
		"mtu":     {IntValue: &mtu},
	}
}

// PrepareResourceClaims names the CDI device for each of our devices that a claim has.
func (d *Driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (
	map[types.UID]kubeletplugin.PrepareResult, error) {
	state, _ := d.Daemon.State()
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		result := kubeletplugin.PrepareResult{}
		if !state.Healthy() {
			result.Err = fmt.Errorf("urdmad of node %s: %w", d.Node, state.Err)
		}
		for _, r := range claim.Status.Allocation.Devices.Results {
			if r.Driver == Name {
				result.Devices = append(result.Devices, kubeletplugin.Device{Requests: []string{r.Request}, PoolName: r.Pool,
					DeviceName: r.Device, CDIDeviceIDs: []string{d.Device}})
			}
		}
		results[claim.UID] = result
	}
	return results, nil
}

// UnprepareResourceClaims has nothing to undo: all containers use the same CDI device.
func (d *Driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (
	map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		results[claim.UID] = nil
	}
	return results, nil
}

// HandleError logs an error of the helper, which tries again by itself.
func (d *Driver) HandleError(_ context.Context, err error, msg string) {
	d.Log("%s: %s: %v", Name, msg, err)
}

// WatchHealthStatus is not supported: a urdmad that does not answer has no devices in the ResourceSlice.
func (d *Driver) WatchHealthStatus(context.Context, chan<- kubeletplugin.DeviceHealthReport) error {
	return kubeletplugin.ErrHealthNotSupported
}

var _ kubeletplugin.DRAPlugin = (*Driver)(nil)
