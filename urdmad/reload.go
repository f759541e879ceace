package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"urdma/config"
	"urdma/systemd"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/serve"
)

// liveSetting is a setting that needs no restart.
type liveSetting struct {
	path  string // a path that ends in "." covers all settings below it
	apply func(*daemon, *config.Config) error
}

func (l liveSetting) covers(path string) bool {
	return path == l.path || strings.HasSuffix(l.path, ".") && strings.HasPrefix(path, l.path)
}

// live lists the settings that are most likely to fail first, so that a failure leaves everything
// unchanged.
var live = append([]liveSetting{
	{"socket_group", (*daemon).applySocketGroup},
	{"limits.", (*daemon).applyLimits},
	{"death_timeout_ms", (*daemon).applyDeathTimeout},
	{"log_level", (*daemon).applyLogLevel},
}, attachedSettings...)

// reload reads the configuration again and applies all changes that break no connection. An
// invalid configuration is refused as a whole.
func (d *daemon) reload() (done string, err error) {
	d.tell(systemd.Reloading)
	defer func() { d.tell(d.reporter.Ready) }()
	cfg, warnings, err := d.source.load()
	for _, w := range warnings {
		d.log.Warn("configuration: " + w)
	}
	if err != nil {
		d.refuse(err)
		return "", err
	}
	changes := diff(d.running, cfg.Settings)
	before := d.log.level.Level()
	if err := d.applyLive(cfg, changes); err != nil {
		d.refuse(err)
		return "", err
	}
	d.refusal.Store(nil)
	after := d.log.level.Level()
	d.log.level.Set(min(before, after)) // the lines below are logged under both levels
	d.logChanges(cfg.Source, changes)
	d.log.level.Set(after)
	return changesInWords(cfg.Source, changes, warnings), nil
}

// refuse logs why a reload is refused; nothing has changed.
func (d *daemon) refuse(err error) {
	for _, line := range strings.Split(err.Error(), "\n") {
		d.log.Error("reload refused, the configuration stays as it was: " + line)
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	status := "reload refused: " + first
	d.refusal.Store(&status)
}

// change is a setting whose value in the file differs from the value in effect.
type change struct {
	path     string
	from, to string // JSON; "" if there is no such setting
	live     bool
}

// diff compares the settings in effect with those read, in the order of the latter. An array
// element that exists on one side only counts as one change.
func diff(running map[string]string, read []config.Setting) (out []change) {
	now := settings(read)
	seen := map[string]bool{}
	note := func(path string) {
		from, had := running[path]
		to, has := now[path]
		if had && has && from == to {
			return
		}
		c := change{path: path, from: from, to: to, live: isLive(path)}
		if e := element(path); e != "" && (!inSettings(running, e) || !inSettings(now, e)) {
			c = change{path: e, from: presence(running, e), to: presence(now, e)}
		}
		if !seen[c.path] {
			seen[c.path] = true
			out = append(out, c)
		}
	}
	for _, s := range read {
		note(s.Path)
	}
	for _, path := range slices.Sorted(maps.Keys(running)) {
		if _, has := now[path]; !has {
			note(path)
		}
	}
	return out
}

func settings(list []config.Setting) map[string]string {
	m := make(map[string]string, len(list))
	for _, s := range list {
		m[s.Path] = s.Value
	}
	return m
}

// element returns "ports[1]" for "ports[1].mtu"; "" outside arrays.
func element(path string) string {
	if end := strings.IndexByte(path, ']'); end >= 0 {
		return path[:end+1]
	}
	return ""
}

func inSettings(m map[string]string, element string) bool {
	for path := range m {
		if strings.HasPrefix(path, element+".") || path == element {
			return true
		}
	}
	return false
}

func presence(m map[string]string, element string) string {
	if inSettings(m, element) {
		return "there"
	}
	return "not there"
}

func isLive(path string) bool {
	for _, l := range live {
		if l.covers(path) {
			return true
		}
	}
	return false
}

// applyLive applies the changes that need no restart, and records them as in effect.
func (d *daemon) applyLive(cfg *config.Config, changes []change) error {
	for _, l := range live {
		if !slices.ContainsFunc(changes, func(c change) bool { return l.covers(c.path) }) {
			continue
		}
		if err := l.apply(d, cfg); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if c.live {
			d.running[c.path] = c.to
		}
	}
	return nil
}

// changesInWords describes the result of a reload for the user who asked for it.
func changesInWords(file string, changes []change, warnings []string) string {
	lines := []string{file + " is read again"}
	for _, c := range changes {
		if c.live {
			lines = append(lines, fmt.Sprintf("applied: %s from %s to %s", c.path, c.from, c.to))
		} else {
			lines = append(lines, fmt.Sprintf("needs a restart: %s is %s, in the file %s", c.path, c.from, c.to))
		}
	}
	if len(changes) == 0 {
		lines[0] += ": nothing has changed"
	}
	for _, w := range warnings {
		lines = append(lines, "warning: "+w)
	}
	return strings.Join(lines, "\n")
}

func (d *daemon) logChanges(file string, changes []change) {
	restart := 0
	for _, c := range changes {
		if c.live {
			d.log.Info("reload: applied", "setting", c.path, "from", logged(c.from), "to", logged(c.to))
		} else {
			restart++
			d.log.Warn("reload: needs a restart", "setting", c.path, "running", logged(c.from), "file", logged(c.to))
		}
	}
	d.log.Info("reloaded", "file", file, "applied", len(changes)-restart, "need_restart", restart)
}

// logged returns a JSON value for the log: a string loses its quotes, because the log adds its
// own.
func logged(value string) string {
	var s string
	if json.Unmarshal([]byte(value), &s) == nil {
		return s
	}
	return value
}

// applySocketGroup applies socket_group, except to a socket from systemd, whose unit decides.
func (d *daemon) applySocketGroup(c *config.Config) error {
	if d.activated {
		d.log.Warn("socket_group does not apply to a socket from systemd: SocketGroup= in urdmad.socket", "socket_group",
			c.SocketGroup)
		return nil
	}
	if err := d.shareSocket(c.SocketGroup); err != nil {
		return err
	}
	d.socketGroup = c.SocketGroup
	return nil
}

// applyDeathTimeout applies death_timeout to connections made from now on.
func (d *daemon) applyDeathTimeout(c *config.Config) error {
	t := clock.Time(c.DeathTimeout)
	for _, p := range d.Pollers {
		p.Do(func() {
			p.Engine.TRP.SetDeathTimeout(t)
			p.Engine.MPA.SetDeathTimeout(t)
			p.Engine.SameHost.SetDeathTimeout(t)
			p.CM.SetTimeout(t)
		})
	}
	return nil
}

func (d *daemon) applyLimits(c *config.Config) error {
	d.Server.SetLimits(serve.Limits(c))
	return nil
}

func (d *daemon) applyLogLevel(c *config.Config) error {
	d.log.level.Set(levelOf(c))
	return nil
}
