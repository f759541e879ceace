package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Cores are the processor cores that this process may use, in ascending order.
func Cores() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var cores []int
	for core := 0; len(cores) < set.Count(); core++ {
		if set.IsSet(core) {
			cores = append(cores, core)
		}
	}
	return cores
}

// CheckCores checks the workers' cores against the list of existing ones. Its error is of type Errors.
func (c *Config) CheckCores(there []int) error {
	var errs Errors
	for i, w := range c.Workers {
		if w.Core < 0 || len(there) == 0 || slices.Contains(there, w.Core) {
			continue
		}
		errs = append(errs, c.wrong(indexPath("workers", i)+".core",
			"a core that urdmad may use here: "+ranges(there)+"; or -1 for any"))
	}
	return errs.orNil()
}

// ranges writes 0, 1, 2, 5 as "0-2, 5".
func ranges(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		last := i
		for last+1 < len(list) && list[last+1] == list[last]+1 {
			last++
		}
		part := strconv.Itoa(list[i])
		if last > i {
			part += "-" + strconv.Itoa(list[last])
		}
		parts = append(parts, part)
		i = last + 1
	}
	return strings.Join(parts, ", ")
}

// Warnings lists what is allowed but rarely intended: overlapping networks, of which only one port is ever used;
// drivers that look misspelt; cores that don't exist; ports without a device; and options for an EAL that is not
// started.
func (c *Config) Warnings() []string {
	var out []string
	for i := range c.Ports {
		for k := range i {
			a, b := c.Ports[i].Address, c.Ports[k].Address
			ofTheLink := a.Addr().Is6() && a.Addr().IsLinkLocalUnicast() // programs choose the link
			if a.Overlaps(b) && !ofTheLink {
				e := c.wrong(indexPath("ports", i)+"."+c.Ports[i].AddressSetting(),
					fmt.Sprintf("a network that does not overlap with ports[%d]'s, %s: "+
						"packets for both leave by one of them", k, b.Masked()))
				out = append(out, e.Error())
			}
		}
	}
	for i, p := range c.Ports {
		if p.PCIAddress == "" && p.Vdev == "" {
			e := c.wrong(indexPath("ports", i)+".pci_address",
				"a NIC's address (urdma doctor lists them), or a \"vdev\" in its place: without either urdmad does not start")
			e.Found = "nothing"
			out = append(out, e.Error())
		}
		if hint := suggestDriver(p.Vdev); hint != "" {
			e := c.wrong(indexPath("ports", i)+".vdev", "a driver of DPDK's")
			e.Hint = hint
			out = append(out, e.Error())
		}
	}
	if err := c.CheckCores(Cores()); err != nil {
		out = append(out, err.Error())
	}
	if len(c.EALArgs) > 0 && !slices.ContainsFunc(c.Ports, func(p Port) bool { return p.usesEAL() }) {
		out = append(out, c.wrong("eal_args", "none without a port that starts DPDK's environment abstraction layer, "+
			"by pci_address or a vdev other than loopback, memif, udp and tcp: they have no effect").Error())
	}
	return out
}

// PortError is an error for a port's setting that this machine does not support.
func (c *Config) PortError(port, setting, allowed string) error {
	for i := range c.Ports {
		if c.Ports[i].Name == port {
			return c.wrong(indexPath("ports", i)+"."+setting, allowed)
		}
	}
	return &Error{File: c.Source, Path: setting, Allowed: allowed}
}

// wrong is an error for the effective value of a setting.
func (c *Config) wrong(path, allowed string) *Error {
	e := &Error{File: c.Source, Path: path, Allowed: allowed}
	for _, s := range c.Settings {
		if s.Path == path {
			e.Found = s.Value
			if _, line, ok := strings.Cut(s.Origin, c.Source+":"); ok {
				e.Line, _ = strconv.Atoi(line)
			}
		}
	}
	return e
}
