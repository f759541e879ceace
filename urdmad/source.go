package main

import (
	"errors"
	"io/fs"

	"urdma/config"
)

// source is where the configuration comes from, at the start and at each
// reload.
type source struct {
	file     string
	udp      bool     // without a file: a port for the machine's neighbours
	optional bool     // a file that doesn't exist stands for the default
	ealArgs  []string // from the command line, after the file's

	responder string // in place of the configuration's; "": that
}

// load reads the configuration and what is to be warned about.
func (s source) load() (cfg *config.Config, warnings []string, err error) {
	switch {
	case s.udp:
		cfg = config.DefaultUDP()
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
	if err := cfg.CheckCores(config.Cores()); err != nil {
		return nil, warnings, configError{err}
	}
	cfg.EALArgs = append(cfg.EALArgs, s.ealArgs...)
	return cfg, append(warnings, cfg.Warnings()...), nil
}
