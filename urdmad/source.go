package main

import (
	"errors"
	"fmt"
	"io/fs"

	"urdma/config"
)

// source is where the configuration comes from, at the start and at each
// reload.
type source struct {
	file     string
	vdev     string   // without a file, "udp" or "tcp": a port for the machine's neighbours
	optional bool     // a file that doesn't exist stands for the default
	ealArgs  []string // from the command line, after the file's

	responder string // in place of the configuration's; "": that
	socket    string // likewise
}

// defaultSocketPort is the UDP port of --udp and --tcp without a number.
const defaultSocketPort = "30035"

// setVdev takes the port numbers of the flags --udp and --tcp, of which one is given at
// most, and no configuration beside it.
func (s *source) setVdev(udp, tcp string, configured bool) error {
	name, number := "udp", udp
	switch {
	case udp != "" && tcp != "":
		return errors.New("--udp and --tcp are both given, expected one: a tcp port has a UDP socket too")
	case udp == "" && tcp == "":
		return nil
	case tcp != "":
		name, number = "tcp", tcp
	}
	s.vdev = name
	if number != defaultSocketPort {
		s.vdev += ",port=" + number
	}
	if _, err := config.ParseVdev(s.vdev); err != nil {
		return fmt.Errorf("--%s=%s: expected a port number from 1 to 65535", name, number)
	}
	if configured {
		return fmt.Errorf("--%s and a configuration are both given, expected one; \"vdev\": %q in the configuration does the same", name, s.vdev)
	}
	return nil
}

// load reads the configuration and what is to be warned about.
func (s source) load() (cfg *config.Config, warnings []string, err error) {
	switch {
	case s.vdev != "":
		cfg = config.DefaultSockets(s.vdev)
	case s.file == "":
		cfg = config.Default()
	default:
		cfg, err = config.Load(s.file, func(w string) { warnings = append(warnings, w) })
		if s.optional && errors.Is(err, fs.ErrNotExist) {
			cfg, err = config.Default(), nil
		}
	}
	if err != nil {
		return nil, warnings, configError{err}
	}
	if s.responder != "" {
		if err := cfg.SetResponder(s.responder, "--responder"); err != nil {
			return nil, warnings, configError{err}
		}
	}
	if s.socket != "" {
		if err := cfg.SetSocket(s.socket, "--socket"); err != nil {
			return nil, warnings, configError{err}
		}
	}
	if err := cfg.CheckCores(config.Cores()); err != nil {
		return nil, warnings, configError{err}
	}
	warnings = append(warnings, cfg.Warnings()...)
	cfg.EALArgs = append(cfg.EALArgs, s.ealArgs...)
	return cfg, warnings, nil
}
