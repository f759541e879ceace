// Package sysfs writes a small directory tree that stands for /sys. Programs get its path from
// ibv_get_sysfs_path(3) and look for class/infiniband and class/infiniband_verbs (Open MPI's
// openib BTL requires the first), and liburdma.so redirects their accesses to /sys. The package
// knows the format of those files and nothing else.
package sysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"urdma/verbs/personality"
)

// Port identifies a port by its number, from 1, on a device.
type Port struct {
	Device string
	Number int
}

// dir returns the port's directory below a root, with a trailing slash.
func (p Port) dir() string { return fmt.Sprintf("class/infiniband/%s/ports/%d/", p.Device, p.Number) }

// Device is one port as the tree shows it, with its device.
type Device struct {
	Port
	GUID        [8]byte // GUID of the device
	Is          personality.Port
	Personality *personality.Personality
	Firmware    string
	Driver      string // driver of the port
	Interface   string // kernel interface below the port, or empty
	Up          bool   // link state of the port
	Counters    Counters
}

// mark names the file that identifies a tree made by urdmad, so that Remove and Write never
// delete a directory that a configuration names by mistake.
const mark = ".urdma-sysfs"

// ErrForeign reports a directory that is not a tree made by urdmad.
var ErrForeign = errors.New("sysfs: the directory exists and is not one that urdmad made")

// Write replaces the tree in dir. It has the devices as urdma.json shows them, and in Shown's
// directories the same devices as each transport.
func Write(dir string, devices []Device) error {
	if err := Remove(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("sysfs: %w", err)
	}
	if err := put(dir, mark, "made by urdmad, removed when it stops"); err != nil {
		return err
	}
	for i := range devices {
		if err := devices[i].write(dir, i); err != nil {
			return err
		}
	}
	for _, sub := range roots() {
		if err := putAll(filepath.Join(dir, sub), shared()); err != nil {
			return err
		}
	}
	return writeProfiles(dir, devices)
}

// Shown returns the directory below dir that has the devices as a transport chosen by a program
// (URDMA_TRANSPORT).
func Shown(transport string) string { return "transport/" + transport }

// roots returns the directories below dir that each stand for /sys, "" among them.
func roots() []string {
	list := []string{""}
	for _, name := range personality.Names() {
		list = append(list, Shown(name))
	}
	return list
}

// write makes the files of port i, counted over all devices. Files that do not depend on the
// transport are symbolic links.
func (d *Device) write(dir string, i int) error {
	as := *d
	for _, sub := range roots() {
		if sub != "" {
			as.Personality = personality.Named(filepath.Base(sub))
		}
		if err := putAll(filepath.Join(dir, sub), as.files(i)); err != nil {
			return err
		}
		if sub == "" {
			continue
		}
		for _, name := range []string{"counters", "hw_counters"} {
			if err := link(dir, filepath.Join(sub, d.dir()+name), d.dir()+name); err != nil {
				return err
			}
		}
	}
	return SetCounters(dir, d.Port, d.Counters, nil)
}

// SetLink writes a new link state to the tree that Write made, unless the port is shown as
// InfiniBand; then SetSubnet does.
func SetLink(dir string, p Port, up bool) error {
	d := Device{Port: p, Up: up}
	return p.set(dir, false, d.link())
}

// SetAddress writes a new address to the tree that Write made. If the port is shown as
// InfiniBand, SetSubnet sets its LID.
func SetAddress(dir string, d Device) error {
	for _, sub := range roots() {
		if sub != "" {
			d.Personality = personality.Named(filepath.Base(sub))
		}
		for i, gid := range d.Personality.GIDs(&d.Is) {
			if err := put(filepath.Join(dir, sub), fmt.Sprint(d.dir(), "gids/", i), groups(gid.Value[:])); err != nil {
				return err
			}
		}
	}
	return nil
}

// Subnet has the values that a subnet manager determines for a port. State is PortState, Phys is
// PortPhysicalState (InfiniBand Architecture Specification vol. 1).
type Subnet struct {
	LID, SMLID     uint16
	LMC, SMSL      byte
	State, Phys    byte
	CapabilityMask uint32
}

// SetSubnet writes these values if the port is shown as InfiniBand.
func SetSubnet(dir string, p Port, s Subnet) error {
	return p.set(dir, true, s.files(p.dir()))
}

// set replaces files in the trees that show the port as InfiniBand, or in the other ones.
func (p Port) set(dir string, infiniBand bool, files map[string]string) error {
	for _, sub := range roots() {
		layer, err := os.ReadFile(filepath.Join(dir, sub, p.dir()+"link_layer"))
		if err != nil {
			return fmt.Errorf("sysfs: %w", err)
		}
		if (string(layer) == personality.Named(personality.IB).LinkLayerText+"\n") != infiniBand {
			continue
		}
		if err := putAll(filepath.Join(dir, sub), files); err != nil {
			return err
		}
	}
	return nil
}

// Remove deletes a tree that Write made, also an empty directory left when there was no space for
// the first file. A missing directory is no error.
func Remove(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, mark)); err != nil {
		if unix.Rmdir(dir) == nil { // rmdir removes empty directories only
			return nil
		}
		return fmt.Errorf("%w: %s", ErrForeign, dir)
	}
	return os.RemoveAll(dir)
}

// link makes a symbolic link to another file or directory in dir.
func link(dir, name, to string) error {
	from := filepath.Dir(name)
	if err := os.MkdirAll(filepath.Join(dir, from), 0o755); err != nil {
		return fmt.Errorf("sysfs: %w", err)
	}
	relative, err := filepath.Rel(from, to)
	if err == nil {
		err = os.Symlink(relative, filepath.Join(dir, name))
	}
	if err != nil {
		return fmt.Errorf("sysfs: %w", err)
	}
	return nil
}

// putAll replaces files, by their names.
func putAll(dir string, files map[string]string) error {
	for name, text := range files {
		if err := put(dir, name, text); err != nil {
			return err
		}
	}
	return nil
}

// replacing is held while a file is replaced, because link and counters may change at any time.
var replacing sync.Mutex

// put replaces a file with a text and a newline.
func put(dir, name, text string) error { return replace(dir, name, text+"\n") }

// replace replaces a file atomically: a reader gets the old or the new content, even if the file system
// has no space for the new one.
func replace(dir, name, content string) error {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("sysfs: %w", err)
	}
	replacing.Lock()
	defer replacing.Unlock()
	next := filepath.Join(dir, ".next")
	if err := os.WriteFile(next, []byte(content), 0o444); err != nil {
		_ = os.Remove(next) // it may exist and be empty
		return fmt.Errorf("sysfs: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("sysfs: %w", err)
	}
	return nil
}
