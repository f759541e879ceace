package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"urdma/config"
	"urdma/schema"
	"urdma/test/programtest"
	"urdma/urdmad/serve"
	"urdma/verbs/probe"
)

// effects has for each setting a value that is not the default, and where it shows in a urdmad. Settings of devices
// that a test can't open show in the driver's arguments.
var effects = map[string]struct {
	value string
	shows func(d *daemon) any
}{
	"ports[].name":   {`"other0"`, func(d *daemon) any { return d.Server.Devices[0].Name }},
	"ports[].device": {`"hca0"`, func(d *daemon) any { return d.Server.Devices[0].Of }},
	"ports[].vdev": {`"memif,role=server,socket=@SOCKET@"`,
		func(d *daemon) any { return d.Ports[0].Info().Driver }},
	"ports[].pci_address":      {`"0000:3b:00.1"`, func(d *daemon) any { return serve.Specs(d.Config)[0].PCI }},
	"ports[].ipv4_address":     {`"198.18.0.2/24"`, func(d *daemon) any { return d.Pollers[0].Engine.Interface(0).IP() }},
	"ports[].ipv6_address":     {`"fd00:1::2"`, func(d *daemon) any { return d.Pollers[0].Engine.Interface(0).IP() }},
	"ports[].gateway":          {`"198.18.0.254"`, func(d *daemon) any { return d.Config.Ports[0].Gateway }},
	"ports[].mtu":              {`1400`, func(d *daemon) any { return d.Server.Devices[0].MTU }},
	"ports[].interface_mtu":    {`"raise"`, func(d *daemon) any { return serve.Specs(d.Config)[0].RaiseMTU }},
	"ports[].vlan":             {`100`, func(d *daemon) any { return serve.Specs(d.Config)[0].VLAN }},
	"ports[].kernel_interface": {`"urdmatest0"`, func(d *daemon) any { return d.Config.Ports[0].KernelInterface }},
	"ports[].allow":            {`["127.0.0.0/8"]`, func(d *daemon) any { return serve.Specs(d.Config)[0].Allow }},
	"ports[].crc":              {`"always"`, func(d *daemon) any { return d.Config.Ports[0].CRC }},
	"ports[].protocol":         {`"rocev2"`, func(d *daemon) any { return serve.Specs(d.Config)[0].Vdev }},
	"ports[].raw_packets":      {`"non-ip"`, func(d *daemon) any { return d.Server.Devices[0].RawPackets }},
	"ports[].mac_address":      {`"02:00:0a:02:00:64"`, func(d *daemon) any { return d.Server.Devices[0].MAC }},
	"ports[].max_qp":           {`7`, func(d *daemon) any { return d.Server.Devices[0].MaxQP }},
	"ports[].rx_desc_count":    {`64`, func(d *daemon) any { return serve.Specs(d.Config)[0].RxDesc }},
	"ports[].tx_desc_count":    {`64`, func(d *daemon) any { return serve.Specs(d.Config)[0].TxDesc }},
	"ports[].rx_burst_size": {`8`, func(d *daemon) any {
		rx,
			_ := d.Pollers[0].Engine.Interface(0).Bursts()
		return rx
	}},
	"ports[].tx_burst_size": {`8`, func(d *daemon) any {
		_,
			tx := d.Pollers[0].Engine.Interface(0).Bursts()
		return tx
	}},
	"ports[].transport": {`"roce"`, func(d *daemon) any { return d.Server.Devices[0].Personality }},
	"ports[].placement": {`"immediate"`, func(d *daemon) any { return d.Pollers[0].Engine.PlacesImmediately(0) }},
	"profile":           {`"cx6-ib"`, func(d *daemon) any { return d.Server.Profile }},
	"transport":         {`"roce"`, func(d *daemon) any { return d.Server.Devices[0].Personality }},
	"placement":         {`"immediate"`, func(d *daemon) any { return d.Pollers[0].Engine.PlacesImmediately(0) }},
	"eal_args":          {`{"no-huge":true}`, func(d *daemon) any { return d.Config.EALArgs }},
	"socket":            {`"@DIR@/other.sock"`, func(d *daemon) any { return d.listener.Addr().String() }},
	"socket_group": {fmt.Sprintf("%q", fmt.Sprint(os.Getgid())),
		func(d *daemon) any { return mode(d.Config.Socket) }},
	"sysfs_dir":            {`"@DIR@/sys"`, func(d *daemon) any { return d.Server.Sysfs }},
	"fabric":               {`"@FABRIC@"`, func(d *daemon) any { return d.subnet.Nodes() }},
	"recorder_dir":         {`"@DIR@/records"`, func(d *daemon) any { return d.watch.Records }},
	"stats_timer_interval": {`0`, func(d *daemon) any { return d.Config.StatsInterval > 0 }},
	"death_timeout_ms":     {`500`, func(d *daemon) any { return d.Pollers[0].Engine.TRP.DeathTimeout() }},
	"workers[].core":       {`@CORE@`, func(d *daemon) any { return d.Policy(0).Core }},
	"polling.spin_us":      {`7`, func(d *daemon) any { return d.Policy(0).Spin }},
	"polling.yield_us":     {`7`, func(d *daemon) any { return d.Policy(0).Yield }},
	"polling.max_sleep_us": {`0`, func(d *daemon) any { return d.Policy(0).Yield }},
	"polling.nice":         {`1`, func(d *daemon) any { return d.Policy(0).Nice }},
	"responder":            {`"off"`, func(d *daemon) any { return d.responder.Expected(probe.Port) }},
	"responder_allow":      {`["10.2.0.0/16"]`, func(d *daemon) any { return d.responder.Policy().Allow }},
	"metrics_address":      {`"127.0.0.1:@PORT@"`, func(d *daemon) any { return d.metrics != nil }},
	"log_level":            {`"error"`, func(d *daemon) any { return d.log.level.Level() }},
	"log_format":           {`"json"`, func(d *daemon) any { return d.log.form }},
}

func mode(path string) any {
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	return fi.Mode()
}

// leaves returns the settings that have a value.
func leaves() (out []string) {
	for _, p := range schema.Properties() {
		container := p.Path == "ports" || p.Path == "workers" || p.Path == "polling" || p.Path == "limits"
		if !container && !strings.HasPrefix(p.Path, "$") {
			out = append(out, p.Path)
		}
	}
	return out
}

// TestEachSettingHasAnEffect: each setting is used.
func TestEachSettingHasAnEffect(t *testing.T) {
	plain := begin(t, "", "")
	for _, path := range leaves() {
		if strings.HasPrefix(path, "limits.") {
			continue // TestEachLimitHasAnEffect
		}
		e := effects[path]
		if e.shows == nil {
			t.Errorf("%s: nobody says where it shows", path)
			continue
		}
		t.Run(path, func(t *testing.T) {
			d := begin(t, path, e.value)
			if was, is := fmt.Sprint(e.shows(plain)), fmt.Sprint(e.shows(d)); was == is {
				t.Errorf("with the default and with %s: %s", e.value, is)
			}
		})
	}
}

// TestEachLimitHasAnEffect: each limit shows in control's copy of them, in a urdmad where each has another value.
func TestEachLimitHasAnEffect(t *testing.T) {
	values := map[string]string{}
	for i, path := range leaves() {
		name, limit := strings.CutPrefix(path, "limits.")
		switch {
		case !limit:
		case name == "queue_bytes":
			values[name] = "1048576"
		case name == "files":
			values[name] = "17"
		case name == "user_share":
			values[name] = "18"
		default:
			values[name] = fmt.Sprint(5000 + i)
		}
	}
	copied := strings.Fields(strings.Trim(fmt.Sprint(begin(t, "limits", object(values)).Server.Limits), "{}"))
	for name, value := range values {
		if !slices.Contains(copied, value) {
			t.Errorf("limits.%s: %s is not among %v", name, value, copied)
		}
	}
}

// begin starts a urdmad with one setting that is not the default. If the machine lacks the device, or the address,
// nothing is started.
func begin(t *testing.T, path, value string) *daemon {
	t.Helper()
	dir := t.TempDir()
	cores := config.Cores()
	fabric := dir + "/fabric.topo"
	if err := os.WriteFile(fabric, []byte("Switch 4 \"s1\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	value = strings.NewReplacer("@DIR@", dir, "@FABRIC@", fabric, "@SOCKET@", dir+"/memif.sock", "@CORE@",
		fmt.Sprint(cores[len(cores)-1]), "@PORT@", fmt.Sprint(programtest.FreePort(t))).Replace(value)
	settings := map[string]string{"socket": `"` + dir + `/urdmad.sock"`}
	port := map[string]string{"vdev": `"loopback"`, "ipv4_address": `"198.18.0.1/24"`}
	group, name, inside := strings.Cut(path, ".")
	switch {
	case path == "ports[].pci_address":
		delete(port, "vdev")
		port[name] = value
	case path == "ports[].allow":
		port["vdev"], port[name] = `"udp"`, value
	case path == "ports[].vlan", path == "ports[].kernel_interface":
		port["vdev"], port[name] = `"net_ring0"`, value
	case path == "ports[].protocol":
		port["vdev"], port[name] = `"udp"`, value
	case path == "ports[].raw_packets":
		port["vdev"], port[name] = `"memif,role=server,socket=`+dir+`/memif.sock"`, value
	case path == "ports[].crc":
		port["vdev"], port[name] = `"tcp"`, value
	case group == "ports[]":
		port[name] = value
		if name == "ipv6_address" {
			delete(port, "ipv4_address")
		}
	case group == "workers[]":
		settings["workers"] = "[" + object(map[string]string{name: value}) + "]"
	case inside:
		settings[group] = object(map[string]string{name: value})
	case path != "":
		settings[path] = value
	}
	settings["ports"] = "[" + object(port) + "]"
	file := dir + "/urdma.json"
	if err := os.WriteFile(file, []byte(object(settings)), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := source{file: file}.load()
	if err != nil {
		t.Fatal(err)
	}
	d := newDaemon(source{file: file}, cfg)
	if p := &cfg.Ports[0]; p.PCIAddress != "" || p.Vdev == "net_ring0" || p.Vdev == "udp" || p.Vdev == "tcp" {
		return d
	}
	t.Cleanup(func() { _ = d.stop() })
	if err := d.start(); err != nil {
		t.Fatal(err)
	}
	return d
}

func object(m map[string]string) string {
	var parts []string
	for k, v := range m {
		parts = append(parts, fmt.Sprintf("%q:%s", k, v))
	}
	return "{" + strings.Join(parts, ",") + "}"
}
