package sysfs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"

	"urdma/verbs/personality"
)

// ShownProfile returns the directory below dir that has the devices as a profile, on PCI devices as in the kernel's
// /sys. Their ports' directories are links to those of the profile's transport.
func ShownProfile(name string) string { return "profile/" + name }

func writeProfiles(dir string, devices []Device) error {
	for _, p := range personality.Profiles() {
		root := filepath.Join(dir, ShownProfile(p.Name))
		if err := putAll(root, shared()); err != nil {
			return err
		}
		n := -1
		for i := range devices {
			if devices[i].Number == 1 {
				n++
			}
			if err := devices[i].writeProfile(dir, newAdapter(&p, n), i); err != nil {
				return err
			}
		}
		if err := listMachine(root); err != nil {
			return err
		}
	}
	return nil
}

// adapter is a device as a profile shows it, with directories below the profile's.
type adapter struct {
	*personality.Profile
	n            int    // number of the device, from 0
	bus, address string // of the PCI function
	bridge, pci  string // directories of its bus and of the function
}

func newAdapter(p *personality.Profile, n int) *adapter {
	a := &adapter{Profile: p, n: n}
	a.bus, a.address = p.PCIAddress(n)
	a.bridge = "devices/pci" + a.bus
	a.pci = a.bridge + "/" + a.address
	return a
}

// writeProfile makes the files of port i, counted from 0 over all devices, and with the first port of a device the
// device's.
func (d *Device) writeProfile(dir string, a *adapter, i int) error {
	root, as := filepath.Join(dir, ShownProfile(a.Name)), *d
	as.Port.Device, as.Personality = a.DeviceName(a.n, d.Port.Device), personality.Named(a.Transport)
	files := as.management(i)
	files[a.pci+"/net/"+cmp.Or(d.Interface, d.Port.Device)+"/address"] = net.HardwareAddr(d.Is.MAC[:]).String()
	if d.Number > 1 {
		return putAll(root, files)
	}
	ib, verbs := a.pci+"/infiniband/"+as.Port.Device, fmt.Sprint(a.pci, "/infiniband_verbs/uverbs", i)
	maps.Copy(files, below(a.pci, pciFiles(&a.PCI, a.address)))
	maps.Copy(files, below(ib, as.device(a.Profile)))
	maps.Copy(files, below(verbs, as.verbs(i)))
	maps.Copy(files, below(a.bridge+"/pci_bus/"+a.bus, onlineCPUs("cpuaffinity", "cpulistaffinity")))
	files[verbsNode(i)] = ""
	if err := putAll(root, files); err != nil {
		return err
	}
	if err := replace(root, a.pci+"/config", configSpace(&a.PCI)); err != nil {
		return err
	}
	ports := filepath.Join(Shown(a.Transport), "class/infiniband", d.Port.Device, "ports")
	if err := link(dir, filepath.Join(ShownProfile(a.Name), ib, "ports"), ports); err != nil {
		return err
	}
	return a.writeLinks(root, map[string]string{
		"class/infiniband/" + as.Port.Device: ib,
		ib + "/device":                       a.pci,
		ib + "/subsystem":                    "class/infiniband",
		verbsClass(i):                        verbs,
		verbs + "/device":                    a.pci,
		verbs + "/subsystem":                 "class/infiniband_verbs",
	})
}

// writeLinks makes links, with those of the PCI function.
func (a *adapter) writeLinks(root string, links map[string]string) error {
	bus, driver := a.bridge+"/pci_bus/"+a.bus, "bus/pci/drivers/"+a.PCI.Driver
	maps.Copy(links, map[string]string{
		"class/pci_bus/" + a.bus:       bus,
		bus + "/device":                a.bridge,
		"bus/pci/devices/" + a.address: a.pci,
		driver + "/" + a.address:       a.pci,
		a.pci + "/driver":              driver,
		a.pci + "/subsystem":           "bus/pci",
	})
	for name, to := range links {
		if err := link(root, name, to); err != nil {
			return err
		}
	}
	return nil
}

// machine is the directory that lists the PCI devices of this machine.
const machine = "/sys/bus/pci/devices"

// listMachine adds the machine's own PCI devices, as they are now, to the list of PCI devices below root.
func listMachine(root string) error {
	below := filepath.Join(root, "bus/pci/devices")
	if err := os.MkdirAll(below, 0o755); err != nil {
		return fmt.Errorf("sysfs: %w", err)
	}
	list, _ := os.ReadDir(machine) // there may be no PCI bus, or no /sys
	for _, d := range list {
		err := os.Symlink(filepath.Join(machine, d.Name()), filepath.Join(below, d.Name()))
		if err != nil && !errors.Is(err, fs.ErrExist) { // a device of the machine in our domain is hidden
			return fmt.Errorf("sysfs: %w", err)
		}
	}
	return nil
}
