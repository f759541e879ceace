// Package cdi gives containers the library and the control socket of a node's urdmad, by a specification of the
// Container Device Interface. The specification is the one that the package urdma installs, with the node's paths.
package cdi

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tags.cncf.io/container-device-interface/pkg/cdi"
	specs "tags.cncf.io/container-device-interface/specs-go"
)

// deviceName is the name of the device in the node's specification.
const deviceName = "node"

// Node says where the files of a node are. All paths are those of the node, and must be the same in this process's
// mount namespace.
type Node struct {
	Template  string // the installed specification; the files of its mounts are there, except the socket
	Library   string // directory for the copy of the library
	Socket    string // urdmad's control socket
	Directory string // directory of the node's specifications
	Group     uint32 // group that may use urdmad; containers become members. 0: none
}

// Install copies the library, writes the node's specification, and returns the qualified name of its device. Each file
// is replaced at once, so that containers start at any time; those that run keep the files that they have.
func Install(n Node) (device string, err error) {
	spec, err := read(n.Template)
	if err != nil {
		return "", err
	}
	edits := &spec.Devices[0].ContainerEdits
	socketDir := adaptSocket(edits, n.Socket)
	if socketDir == "" {
		return "", fmt.Errorf("%s has no URDMA_SOCKET, expected one in env", n.Template)
	}
	for _, m := range edits.Mounts {
		if m.ContainerPath == socketDir {
			// The same path in containers: there the library looks for urdmad's tree for /sys, which urdmad names.
			m.HostPath, m.ContainerPath = filepath.Dir(n.Socket), filepath.Dir(n.Socket)
			continue
		}
		to := filepath.Join(n.Library, filepath.Base(m.HostPath))
		if err := copyTree(m.HostPath, to); err != nil {
			return "", fmt.Errorf("copying the library: %w", err)
		}
		m.HostPath = to
	}
	if n.Group != 0 {
		edits.AdditionalGIDs = []uint32{n.Group}
	}
	spec.Devices[0].Name = deviceName
	if spec.Version, err = specs.MinimumRequiredVersion(spec); err != nil {
		return "", err
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs(n.Directory), cdi.WithAutoRefresh(false))
	if err != nil {
		return "", err
	}
	if err := cache.WriteSpec(spec, strings.ReplaceAll(spec.Kind, "/", "-")+"-"+deviceName+".json"); err != nil {
		return "", fmt.Errorf("writing the CDI specification: %w", err)
	}
	return spec.Kind + "=" + deviceName, nil
}

func read(file string) (*specs.Spec, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	spec := new(specs.Spec)
	if err := json.Unmarshal(text, spec); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(spec.Devices) != 1 {
		return nil, fmt.Errorf("%s has %d devices, expected 1", file, len(spec.Devices))
	}
	return spec, nil
}

// adaptSocket changes the socket's path to the node's, and returns the directory that the specification had.
func adaptSocket(edits *specs.ContainerEdits, socket string) (dir string) {
	for i, variable := range edits.Env {
		if path, ok := strings.CutPrefix(variable, "URDMA_SOCKET="); ok {
			dir = filepath.Dir(path)
			edits.Env[i] = "URDMA_SOCKET=" + socket
		}
	}
	return dir
}

// copyTree copies a file or directory, which then everybody can read.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := to + strings.TrimPrefix(path, from)
		switch {
		case d.IsDir():
			return makeDirectory(target)
		case d.Type() == fs.ModeSymlink:
			return copyLink(path, target)
		}
		return copyFile(path, target)
	})
}

// makeDirectory makes a directory that everybody can read, whatever the umask.
func makeDirectory(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, 0o755)
}

func copyLink(from, to string) error {
	target, err := os.Readlink(from)
	if err != nil {
		return err
	}
	name := to + ".new"
	_ = os.Remove(name) // left by a process that was killed
	if err := os.Symlink(target, name); err != nil {
		return err
	}
	return os.Rename(name, to)
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := makeDirectory(filepath.Dir(to)); err != nil {
		return err
	}
	name := to + ".new"
	if err := os.WriteFile(name, text, 0o644); err != nil {
		return err
	}
	if err := os.Chmod(name, 0o644); err != nil {
		return err
	}
	return os.Rename(name, to)
}
