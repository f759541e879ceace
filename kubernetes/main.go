// Command urdma-kubelet makes a node's urdmad available to pods. It runs next to urdmad in the pods of a DaemonSet
// (packaging/kubernetes): as kubelet's device plugin, and as a driver of dynamic resource allocation.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"urdma/kubernetes/cdi"
	"urdma/kubernetes/daemon"
	"urdma/kubernetes/deviceplugin"
	"urdma/kubernetes/dra"
)

var version = "unknown" // set by the linker

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		slog.Error(err.Error())
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	node      cdi.Node
	kubelet   string
	resources []string
	count     int
	dra       bool
	nodeName  string
}

func newRoot() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "urdma-kubelet",
		Short: "make a node's urdmad available to pods",
		Long: "Make a node's urdmad available to pods: write a CDI specification, and hand out its device by kubelet's " +
			"device plugin API (--resource) and by dynamic resource allocation (--dra).\n\nIt runs in a pod whose " +
			"directories of the node have the same paths as on the node.",
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true, Version: version,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.resources, "resource", nil, "hand out devices of the resource `NAME`, such as rdma/urdma; several times for several names of one urdmad")
	f.IntVar(&o.count, "count", 100, "number of devices `N` of each resource: the containers that may share this urdmad")
	f.BoolVar(&o.dra, "dra", false, "be a driver of dynamic resource allocation, too")
	f.StringVar(&o.nodeName, "node-name", os.Getenv("NODE_NAME"), "`NAME` of this node, for --dra")
	f.StringVar(&o.kubelet, "kubelet", "/var/lib/kubelet", "kubelet's `DIRECTORY`")
	f.StringVar(&o.node.Socket, "socket", os.Getenv("URDMA_SOCKET"), "`PATH` of urdmad's control socket")
	f.Uint32Var(&o.node.Group, "group", 0, "`GROUP` whose members may use urdmad (socket_group), as a number: containers get it as supplementary group; 0: none")
	f.StringVar(&o.node.Template, "specification", "/etc/cdi/urdma.json", "CDI specification `FILE` that the package installed")
	f.StringVar(&o.node.Library, "library", "/var/lib/urdma", "`DIRECTORY` of the node for the library")
	f.StringVar(&o.node.Directory, "cdi", "/var/run/cdi", "`DIRECTORY` of the node for the CDI specification")
	cmd.AddCommand(newPrepare())
	return cmd
}

func (o *options) run(ctx context.Context) error {
	switch {
	case o.node.Socket == "":
		return errors.New("no control socket: give its path by --socket or URDMA_SOCKET")
	case len(o.resources) == 0 && !o.dra:
		return errors.New("nothing to do: give --resource NAME, --dra, or both")
	case o.dra && o.nodeName == "":
		return errors.New("--dra needs the node's name: give it by --node-name or NODE_NAME")
	case o.count < 1:
		return fmt.Errorf("--count %d: expected at least 1", o.count)
	}
	device, err := cdi.Install(o.node)
	if err != nil {
		return err
	}
	logf := func(format string, args ...any) { slog.Info(fmt.Sprintf(format, args...)) }
	logf("CDI device %s", device)
	observer := daemon.New(o.node.Socket)
	servers, err := o.servers(device, observer, logf)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, serve := range servers {
		all.Go(func() {
			if err := serve(ctx); err != nil {
				cancel(err)
			}
		})
	}
	observer.Run(ctx, func(s daemon.State) {
		if s.Healthy() {
			logf("urdmad answers")
		} else {
			logf("urdmad does not answer: %v", s.Err)
		}
	})
	all.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// servers are the device plugins of all resources, and the DRA driver.
func (o *options) servers(device string, observer *daemon.Observer, logf func(string, ...any)) (
	servers []func(context.Context) error, err error) {
	for _, resource := range o.resources {
		servers = append(servers, (&deviceplugin.Plugin{Resource: resource, Count: o.count, Device: device,
			Directory: filepath.Join(o.kubelet, "device-plugins"), Daemon: observer, Log: logf}).Run)
	}
	if !o.dra {
		return servers, nil
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return append(servers, (&dra.Driver{Node: o.nodeName, Count: o.count, Device: device, Kubelet: o.kubelet,
		Client: client, Daemon: observer, Log: logf}).Run), nil
}
