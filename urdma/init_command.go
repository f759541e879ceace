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
	"urdma/verbs/personality"

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
		Long: "Write a configuration file to start from: a port for each NIC that is bound to a driver DPDK can use, and one for each --interface, " +
			"or, where there are none, the loopback port that needs nothing. \"$comment\" properties explain it; urdmad ignores them.",
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
	f.StringArrayVar(&o.interfaces, "interface", nil, "use the kernel's network interface `NAME` over AF_PACKET, which needs CAP_NET_RAW and CAP_NET_ADMIN; may be given several times")
	return cmd
}

// writeNew writes a file whole or not at all.
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
		err = os.Link(f.Name(), path) // fails where another made it meanwhile
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

// entry is one property of the file, in the order written.
type entry struct {
	name  string
	value any
}

type entries []entry

// MarshalJSON keeps the order, which a map would lose.
func (es entries) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, e := range es {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := plainJSON(e.name)
		if err != nil {
			return nil, err
		}
		value, err := plainJSON(e.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// plainJSON leaves < and > as they are: no web page will hold this.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// startingFile writes the file and holds it to what urdma config check says.
func (m machine) startingFile(interfaces []string) ([]byte, error) {
	ports, notes, err := m.ports(interfaces)
	if err != nil {
		return nil, err
	}
	file := entries{
		{"$comment", append([]string{
			"Written by urdma config init. urdma.json(5) explains every property; all but ports have defaults.",
			"After a change: urdma config check FILE, then urdma config show FILE for what it amounts to.",
		}, notes...)},
		{"ports", ports},
		{"$comment_transport", "What the devices claim to be: iwarp, ib or roce."},
		{"transport", personality.IWARP},
		{"$comment_workers", "The poll loop. A core number binds it to that core; -1 does not."},
		{"workers", []entries{{{"core", -1}}}},
	}
	compact, err := plainJSON(file)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, compact, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), config.CheckBytes("the file to be written", b.Bytes())
}
