package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"urdma/verbs/personality"
)

// rules collects the mistakes in a configuration that the schema can't express.
type rules struct {
	doc  *document
	cfg  *Config
	errs Errors
}

func checkRules(d *document, c *Config) Errors {
	r := &rules{doc: d, cfg: c}
	for i := range c.Ports {
		r.port(indexPath("ports", i), &c.Ports[i])
	}
	r.distinctPorts()
	r.devices()
	r.profile()
	r.workers()
	r.networks("responder_allow", c.ResponderAllow)
	r.paths()
	r.metrics()
	return r.errs
}

// refuse records a wrong value; without allowed it repeats the schema's text.
func (r *rules) refuse(path, allowed string) {
	e := r.doc.wrong(path)
	if allowed != "" {
		e.Allowed = allowed
	}
	r.errs = append(r.errs, e)
}

func (r *rules) has(path string) bool { return r.doc.at[path] != nil }

// paths checks lengths in bytes; the schema counts characters.
func (r *rules) paths() {
	if s := r.cfg.Socket; r.has("socket") && (len(s) > maxSocketPath || s != filepath.Clean(s)) {
		r.refuse("socket", "an absolute path of at most 107 bytes (unix(7)), without \"//\", \".\", \"..\" or a slash at "+
			"its end")
	}
	if s := r.cfg.SysfsDir; r.has("sysfs_dir") && (s != filepath.Clean(s) || s == "/") {
		r.refuse("sysfs_dir", "an absolute path other than \"/\", without \"//\", \".\", \"..\" or a slash at its end")
	}
}

func (r *rules) metrics() {
	text := r.cfg.MetricsAddress
	if text == "" {
		return
	}
	host, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = netip.ParseAddr(host)
	}
	n, _ := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 {
		r.refuse("metrics_address", "")
	}
}

// distinctPorts checks that no two ports use the same device, address or name.
func (r *rules) distinctPorts() {
	claims := []struct {
		member, what string
		of           func(p *Port) string
	}{
		{"", "address", func(p *Port) string { return p.Address.Addr().String() }},
		{"pci_address", "NIC", func(p *Port) string { return p.PCIAddress }},
		{"mac_address", "Ethernet address", func(p *Port) string { return p.MAC }},
		{"vdev", "device", vdevClaim},
	}
	for _, c := range claims {
		first := map[string]int{}
		for i := range r.cfg.Ports {
			claim := c.of(&r.cfg.Ports[i])
			if claim == "" || claim == "invalid IP" {
				continue
			}
			if before, dup := first[claim]; dup {
				r.sharedClaim(i, cmp.Or(c.member, r.cfg.Ports[i].AddressSetting()),
					fmt.Sprintf("a different %s for each port (ports[%d] has this one)", c.what, before))
				continue
			}
			first[claim] = i
		}
	}
}

// devices checks that each device has a name of its own, and that its ports stand together and have matching
// settings.
func (r *rules) devices() {
	first := map[string]int{}
	for i := range r.cfg.Ports {
		p, at := &r.cfg.Ports[i], indexPath("ports", i)
		joined := r.has(at + ".device")
		if joined && r.has(at+".name") {
			r.refuse(at+".name", fmt.Sprintf("nothing beside device, after which the port is named %q",
				p.Device+"/"+strconv.Itoa(p.Number)))
		}
		if p.Number == 1 {
			if before, dup := first[p.Device]; dup && joined {
				r.refuse(at+".device", fmt.Sprintf("a name that no other device has (that of ports[%d] is this one); ports of "+
					"one device stand one behind the other", before))
			} else if dup {
				r.sharedClaim(i, "name", fmt.Sprintf("a different name for each port (ports[%d] has this one)", before))
			} else {
				first[p.Device] = i
			}
			continue
		}
		of := r.cfg.Ports[first[p.Device]]
		if p.Transport != of.Transport {
			r.refuse(at+".transport", fmt.Sprintf("%q, as the first port of %s has, or none: one device is shown as one thing",
				of.Transport, p.Device))
		}
		if p.MaxQP != of.MaxQP {
			r.refuse(at+".max_qp", fmt.Sprintf("%d, as the first port of %s has, or none: it is the device's", of.MaxQP,
				p.Device))
		}
	}
}

// profile checks that no port is shown as another transport than the profile's.
func (r *rules) profile() {
	if r.cfg.Profile == "" {
		return
	}
	want := personality.ProfileNamed(r.cfg.Profile).Transport
	for i := range r.cfg.Ports {
		if p := &r.cfg.Ports[i]; p.Transport != want {
			r.refuse(indexPath("ports", i)+".transport", fmt.Sprintf("%q, as the profile %q has, or none", want, r.cfg.Profile))
		}
	}
	if t := r.cfg.Transport; t != "" && t != want {
		r.refuse("transport", fmt.Sprintf("%q, as the profile %q has, or none", want, r.cfg.Profile))
	}
}

// workers checks that each of several workers has its own core.
func (r *rules) workers() {
	list := r.cfg.Workers
	for i, w := range list {
		if at := slices.Index(list, w); at < i && w.Core >= 0 {
			r.refuse(indexPath("workers", i)+".core",
				fmt.Sprintf("a different core for each worker (workers[%d] has this one), or -1 for any", at))
		}
	}
}

// sharedClaim refuses a value of port i that another port has, too, even if it is a default.
func (r *rules) sharedClaim(i int, member, allowed string) {
	path := indexPath("ports", i) + "." + member
	r.refuse(path, allowed)
	if e := r.errs[len(r.errs)-1]; e.Found == "" {
		e.Found = strconv.Quote(r.cfg.Ports[i].Name) + " by default"
	}
}

// vdevClaim is the resource that no second port may use: DPDK's name of the device, or one end of a memif. Loopback
// ports are independent of each other.
func vdevClaim(p *Port) string {
	v, err := ParseVdev(p.Vdev)
	switch {
	case err != nil || v.Kind == VdevNone || v.Kind == VdevLoopback:
		return ""
	case v.Kind == VdevUDP:
		return "" // two ports differ in their addresses
	case v.Kind == VdevMemif:
		return fmt.Sprintf("memif %v %s %d", v.Server, v.Socket, v.ID)
	}
	return strings.ToLower(v.Name)
}
