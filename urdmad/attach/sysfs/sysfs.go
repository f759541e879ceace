// Package sysfs writes the small tree that stands for /sys: programs ask
// ibv_get_sysfs_path(3) where it is and look for class/infiniband and
// class/infiniband_verbs (Open MPI's openib BTL refuses to start without the
// first), and liburdma.so gives them what they look for in /sys itself. It knows
// the form of those files and nothing else.
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

// Port names a port: that of a number, from 1, on a device.
type Port struct {
	Device string
	Number int
}

// dir is the port's directory below a root, with a slash behind it.
func (p Port) dir() string { return fmt.Sprintf("class/infiniband/%s/ports/%d/", p.Device, p.Number) }

// Device is one port as the tree shows it, and the device that it is of.
type Device struct {
	Port
	GUID        [8]byte // of the device
	Is          personality.Port
	Personality *personality.Personality
	Firmware    string
	Driver      string // of the port
	Interface   string // the kernel's below the port, or empty
	Up          bool   // the port's link
	Counters    Counters
}

// mark names the file that says a tree is ours, so that Remove and Write never
// delete a directory that somebody's configuration named by mistake.
const mark = ".urdma-sysfs"

// ErrForeign is returned for a directory that is not a tree of ours.
var ErrForeign = errors.New("sysfs: the directory exists and is not one that urdmad made")

// Write replaces the tree in dir. Besides the devices as urdma.json shows them it
// has them as each transport in Shown's directory.
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
		for name, text := range shared() {
			if err := put(filepath.Join(dir, sub), name, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// Shown is the directory below dir in which devices are as a transport that a
// program chose (URDMA_TRANSPORT).
func Shown(transport string) string { return "transport/" + transport }

// roots are the directories below dir that stand for /sys each, "" among them.
func roots() []string {
	list := []string{""}
	for _, name := range personality.Names() {
		list = append(list, Shown(name))
	}
	return list
}

// write makes the files of port i, by the place among all; what does not depend on the transport is
// linked to.
func (d *Device) write(dir string, i int) error {
	as := *d
	for _, sub := range roots() {
		if sub != "" {
			as.Personality = personality.Named(filepath.Base(sub))
		}
		for name, text := range as.files(i) {
			if err := put(filepath.Join(dir, sub), name, text); err != nil {
				return err
			}
		}
		if sub == "" {
			continue
		}
		for _, name := range []string{"counters", "hw_counters"} {
			port := d.dir()
			if err := os.Symlink("../../../../../../../"+port+name, filepath.Join(dir, sub, port+name)); err != nil {
				return fmt.Errorf("sysfs: %w", err)
			}
		}
	}
	return SetCounters(dir, d.Port, d.Counters)
}

// SetLink shows another state of a port's link in the tree that Write made; where the
// port is InfiniBand's, SetSubnet does.
func SetLink(dir string, p Port, up bool) error {
	d := Device{Port: p, Up: up}
	return p.set(dir, false, d.link())
}

// SetAddress shows another address of d's port in the tree that Write made; where the
// port is InfiniBand's, its LID is SetSubnet's.
func SetAddress(dir string, d Device) error {
	for _, sub := range roots() {
		if sub != "" {
			d.Personality = personality.Named(filepath.Base(sub))
		}
		gid := d.Personality.GID(&d.Is)
		if err := put(filepath.Join(dir, sub), d.dir()+"gids/0", groups(gid[:])); err != nil {
			return err
		}
	}
	return nil
}

// Subnet is what a subnet manager decides of a port: its state is PortState, Phys
// PortPhysicalState (InfiniBand Architecture Specification vol. 1).
type Subnet struct {
	LID, SMLID     uint16
	LMC, SMSL      byte
	State, Phys    byte
	CapabilityMask uint32
}

// SetSubnet shows it where the port is InfiniBand's.
func SetSubnet(dir string, p Port, s Subnet) error {
	return p.set(dir, true, s.files(p.dir()))
}

// set replaces files where the port is InfiniBand's, or else where it is not.
func (p Port) set(dir string, infiniBand bool, files map[string]string) error {
	for _, sub := range roots() {
		layer, err := os.ReadFile(filepath.Join(dir, sub, p.dir()+"link_layer"))
		if err != nil {
			return fmt.Errorf("sysfs: %w", err)
		}
		if (string(layer) == personality.Named(personality.IB).LinkLayerText+"\n") != infiniBand {
			continue
		}
		for file, text := range files {
			if err := put(filepath.Join(dir, sub), file, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// Remove deletes a tree that Write made, also an empty one, where there was no room
// for its first file; a directory that does not exist is no error.
func Remove(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, mark)); err != nil {
		if unix.Rmdir(dir) == nil { // which removes empty directories only
			return nil
		}
		return fmt.Errorf("%w: %s", ErrForeign, dir)
	}
	return os.RemoveAll(dir)
}

// replacing is held by the writer of a file: link and counters change at any time.
var replacing sync.Mutex

// put replaces a file at once: a reader meanwhile gets the old text or the new,
// also where the file system has no room for the new one.
func put(dir, name, text string) error {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("sysfs: %w", err)
	}
	replacing.Lock()
	defer replacing.Unlock()
	next := filepath.Join(dir, ".next")
	if err := os.WriteFile(next, []byte(text+"\n"), 0o444); err != nil {
		_ = os.Remove(next) // it may be there and empty
		return fmt.Errorf("sysfs: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("sysfs: %w", err)
	}
	return nil
}
