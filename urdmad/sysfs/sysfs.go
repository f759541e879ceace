// Package sysfs writes the small tree that stands for /sys: programs ask
// ibv_get_sysfs_path(3) where it is and look for class/infiniband and
// class/infiniband_verbs (Open MPI's openib BTL refuses to start without the
// first). It knows the form of those files and nothing else.
package sysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"urdma/verbs/personality"
)

// Device is one port as the tree shows it.
type Device struct {
	Name        string
	Port        personality.Port
	Personality *personality.Personality
	Firmware    string
	Up          bool // the port's link
}

// mark names the file that says a tree is ours, so that Remove and Write never
// delete a directory that somebody's configuration named by mistake.
const mark = ".urdma-sysfs"

// ErrForeign is returned for a directory that is not a tree of ours.
var ErrForeign = errors.New("sysfs: the directory exists and is not one that urdmad made")

// Write replaces the tree in dir.
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
		for name, text := range devices[i].files(i) {
			if err := put(dir, name, text); err != nil {
				return err
			}
		}
	}
	return put(dir, "class/infiniband_verbs/abi_version", "6")
}

// SetLink shows another state of a port's link in the tree that Write made. Who
// reads a file meanwhile gets the old text or the new, also where the file system
// has no room for the new one.
func SetLink(dir, name string, up bool) error {
	d := Device{Name: name, Up: up}
	for file, text := range d.link() {
		path := filepath.Join(dir, file)
		if err := put(dir, file+".new", text); err != nil {
			_ = os.Remove(path + ".new") // it may be there and empty
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return fmt.Errorf("sysfs: %w", err)
		}
	}
	return nil
}

// Remove deletes a tree that Write made; a directory that does not exist is no
// error.
func Remove(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, mark)); err != nil {
		return fmt.Errorf("%w: %s", ErrForeign, dir)
	}
	return os.RemoveAll(dir)
}

func put(dir, name, text string) error {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("sysfs: %w", err)
	}
	if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
		return fmt.Errorf("sysfs: %w", err)
	}
	return nil
}

// files are the paths and contents of device number i.
func (d *Device) files(i int) map[string]string {
	ib := "class/infiniband/" + d.Name + "/"
	verbs := fmt.Sprintf("class/infiniband_verbs/uverbs%d/", i)
	guid, gid := personality.GUID(d.Port.MAC), d.Personality.GID(&d.Port)
	lid := fmt.Sprintf("%#x", d.Personality.LID(&d.Port))
	files := map[string]string{
		ib + "node_type":                 d.Personality.NodeTypeText,
		ib + "node_guid":                 groups(guid[:]),
		ib + "sys_image_guid":            groups(guid[:]),
		ib + "node_desc":                 d.Name,
		ib + "fw_ver":                    d.Firmware,
		ib + "ports/1/link_layer":        d.Personality.LinkLayerText,
		ib + "ports/1/rate":              "100 Gb/sec (4X EDR)",
		ib + "ports/1/lid":               lid,
		ib + "ports/1/sm_lid":            lid,
		ib + "ports/1/lid_mask_count":    "0",
		ib + "ports/1/gids/0":            groups(gid[:]),
		ib + "ports/1/gid_attrs/types/0": d.Personality.GIDTypeText,
		ib + "ports/1/gid_attrs/ndevs/0": d.Name,
		ib + "ports/1/pkeys/0":           "0xffff",
		verbs + "ibdev":                  d.Name,
		verbs + "abi_version":            "1",
		verbs + "dev":                    fmt.Sprintf("231:%d", 192+i),
	}
	maps.Copy(files, d.link())
	return files
}

// link is what follows the port's link.
func (d *Device) link() map[string]string {
	state, physical := "1: DOWN", "3: Disabled"
	if d.Up {
		state, physical = "4: ACTIVE", "5: LinkUp"
	}
	port := "class/infiniband/" + d.Name + "/ports/1/"
	return map[string]string{port + "state": state, port + "phys_state": physical}
}

// groups writes bytes as sysfs does GUIDs and GIDs: four digits, a colon.
func groups(b []byte) string {
	var s strings.Builder
	for i := 0; i < len(b); i += 2 {
		if i > 0 {
			s.WriteByte(':')
		}
		fmt.Fprintf(&s, "%02x%02x", b[i], b[i+1])
	}
	return s.String()
}
