package main

import (
	"bytes"
	"encoding/json"

	"urdma/config"

	"github.com/spf13/cobra"
)

func newConfigInit() *cobra.Command {
	var interfaces []string
	cmd := &cobra.Command{
		Use:   "init",
		Short: "print a configuration file for the ports of this machine",
		Long: "Print a configuration file for a start: a port for each NIC that is bound to a driver that DPDK can " +
			"use, and one for each --interface; or, if there are none, the loopback port, which needs nothing. " +
			"\"$comment\" properties explain it; urdmad ignores them.",
		Example: "  urdma config init >urdma.json\n  urdma config init --interface eth1 >urdma.json",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m := thisMachine()
			text, err := m.startingFile(interfaces)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	cmd.Flags().StringArrayVar(&interfaces, "interface", nil,
		"use the kernel's network interface `NAME` over AF_PACKET, which needs CAP_NET_RAW and CAP_NET_ADMIN; may be "+
			"given several times")
	return cmd
}

// starting is a urdma.json for beginners.
type starting struct {
	Comment        []string         `json:"$comment"`
	Ports          []startingPort   `json:"ports"`
	CommentWorkers string           `json:"$comment_workers"`
	Workers        []startingWorker `json:"workers"`
}

type startingWorker struct {
	Core int `json:"core"`
}

type startingPort struct {
	Comment        string `json:"$comment"`
	PCIAddress     string `json:"pci_address,omitempty"`
	Vdev           string `json:"vdev,omitempty"`
	CommentAddress string `json:"$comment_ipv4_address,omitempty"`
	Address        string `json:"ipv4_address"`
	CommentMTU     string `json:"$comment_mtu,omitempty"`
	MTU            int    `json:"mtu,omitempty"`
}

// startingFile makes the file and checks it as urdma config check does.
func (m machine) startingFile(interfaces []string) ([]byte, error) {
	ports, notes, err := m.ports(interfaces)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(starting{
		Comment: append([]string{
			"Written by urdma config init. urdma.json(5) explains every property; all but ports have defaults.",
			"After a change: urdma config check FILE, then urdma config show FILE for what it amounts to.",
		}, notes...),
		Ports:          ports,
		CommentWorkers: "The poll loop. A core number binds it to that core; -1 does not.",
		Workers:        []startingWorker{{Core: -1}},
	}); err != nil {
		return nil, err
	}
	return b.Bytes(), config.CheckBytes("the file to be written", b.Bytes())
}
