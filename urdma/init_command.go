package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"urdma/config"

	"github.com/spf13/cobra"
)

// initOptions are the flags of urdma config init.
type initOptions struct {
	output     string
	force      bool
	interfaces []string
}

func newConfigInit() *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:   "init",
		Short: "write a configuration file for the ports of this machine",
		Long: "Write a configuration file for a start: a port for each NIC that is bound to a driver that DPDK can " +
			"use, and one for each --interface; or, if there are none, the loopback port, which needs nothing. " +
			"\"$comment\" properties explain it; urdmad ignores them.",
		Example: "  urdma config init -o urdma.json\n" +
			"  urdma config init --interface eth1",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m := thisMachine()
			text, err := m.startingFile(o.interfaces)
			if err != nil {
				return err
			}
			if o.output == "" {
				_, err = cmd.OutOrStdout().Write(text)
				return err
			}
			return writeNew(o.output, text, o.force)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "`FILE` to write (default: standard output)")
	f.BoolVar(&o.force, "force", false, "replace a file that exists")
	f.StringArrayVar(&o.interfaces, "interface", nil,
		"use the kernel's network interface `NAME` over AF_PACKET, which needs CAP_NET_RAW and CAP_NET_ADMIN; may be "+
			"given several times")
	return cmd
}

// writeNew writes a whole file or none.
func writeNew(path string, text []byte, force bool) error {
	if _, err := os.Lstat(path); err == nil && !force {
		return fmt.Errorf("%s exists; --force replaces it", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil && !force {
		err = os.Link(f.Name(), path) // fails if another process has made it meanwhile
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%s exists; --force replaces it", path)
		}
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
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

// startingFile writes the file and checks it as urdma config check does.
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
