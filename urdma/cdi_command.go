package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"
)

// systemSocket is the socket of the system's urdmad (systemd/system).
const systemSocket = "/run/urdma/urdmad.sock"

// cdiKind is the kind in a container's request: --device urdma.dev/urdmad=NAME.
const cdiKind = "urdma.dev/urdmad"

// cdiOptions are the flags of urdma cdi.
type cdiOptions struct{ socket, lib, name string }

// cdiSpec is a specification of the Container Device Interface, version 0.3.0
// (https://github.com/cncf-tags/container-device-interface), with the fields used here.
type cdiSpec struct {
	Version string      `json:"cdiVersion"`
	Kind    string      `json:"kind"`
	Devices []cdiDevice `json:"devices"`
}

type cdiDevice struct {
	Name  string   `json:"name"`
	Edits cdiEdits `json:"containerEdits"`
}

type cdiEdits struct {
	Env    []string   `json:"env"`
	Mounts []cdiMount `json:"mounts"`
}

type cdiMount struct {
	HostPath      string   `json:"hostPath"`
	ContainerPath string   `json:"containerPath"`
	Options       []string `json:"options"`
}

func newCDI() *cobra.Command {
	var o cdiOptions
	cmd := &cobra.Command{
		Use:   "cdi",
		Short: "print a CDI specification, by which containers get a urdmad",
		Long: "Print a specification of the Container Device Interface (CDI): podman run --device " +
			cdiKind +
			"=default IMAGE PROGRAM then runs PROGRAM on the urdmad of this host, without further mounts, " +
			"variables or anything in the image. The package installs one for the system's urdmad in " +
			"/etc/cdi/urdma.json. The container gets, read-only, liburdma.so and the directory of the control " +
			"socket, at the same paths, and the environment that urdma exec would set. The socket must admit the " +
			"container's user (socket_group in urdma.json(5)), and the container's libc must be as new as the " +
			"host's.",
		Example: "  urdma cdi >/etc/cdi/urdma.json\n  urdma cdi --name mine --socket /tmp/lab/urdmad.sock " +
			">/var/run/cdi/mine.json",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			spec, err := o.spec()
			if err != nil {
				return err
			}
			e := json.NewEncoder(cmd.OutOrStdout())
			e.SetIndent("", "  ")
			return e.Encode(spec)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.socket, "socket", systemSocket, "`PATH` of urdmad's control socket")
	f.StringVar(&o.lib, "lib", "",
		"`PATH` of liburdma.so on the host, which need not be there yet (default: as urdma exec finds it)")
	f.StringVar(&o.name, "name", "default", "`NAME` of the device: --device "+cdiKind+"=NAME")
	return cmd
}

// cdiName matches a name that CDI allows for a device.
var cdiName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?$`)

func (o *cdiOptions) spec() (*cdiSpec, error) {
	if !cdiName.MatchString(o.name) {
		return nil, withStatus(exitUsage,
			fmt.Errorf("--name is %q, allowed: letters and digits, and between them \"_\", \".\", \":\" and \"-\"", o.name))
	}
	lib := o.lib
	if lib == "" {
		found, err := findLibrary("")
		if err != nil {
			return nil, err
		}
		lib = found
	}
	for _, path := range []*string{&lib, &o.socket} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return nil, err
		}
		*path = absolute
	}
	names := filepath.Join(filepath.Dir(lib), "liburdma.d") // symbolic links with the real libraries' names
	malloc, err := mallocLibrary(lib, "")
	if err != nil {
		return nil, err
	}
	edits := cdiEdits{Env: []string{"LD_PRELOAD=" + preload(lib, malloc, ""), "LD_LIBRARY_PATH=" + names,
		"URDMA_SOCKET=" + o.socket}}
	// the socket's whole directory: a socket that is created again is another file
	for _, path := range []string{lib, names, filepath.Dir(o.socket)} {
		edits.Mounts = append(edits.Mounts,
			cdiMount{HostPath: path, ContainerPath: path, Options: []string{"bind", "ro", "nosuid", "nodev"}})
	}
	return &cdiSpec{Version: "0.3.0", Kind: cdiKind, Devices: []cdiDevice{{Name: o.name, Edits: edits}}}, nil
}
