package main

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"urdma/systemd"
)

// listen takes the control socket that systemd opened, or else makes one.
func (d *daemon) listen() (err error) {
	if d.listener, err = systemd.Listener(); err != nil {
		return configError{err}
	}
	if d.listener != nil {
		d.activated = true
		return d.adoptSocket()
	}
	d.socketGroup = d.Config.SocketGroup
	return d.openSocket()
}

// adoptSocket takes over a socket from systemd. Its unit decides about path, mode and group.
func (d *daemon) adoptSocket() error {
	path := d.listener.Addr().String()
	d.socketFile, _ = os.Lstat(path) // if it is gone already, that is reported later
	if !filepath.IsAbs(path) {
		return configError{fmt.Errorf("the socket from systemd has the address %q, expected an absolute path: ListenSequentialPacket= in urdmad.socket", path)}
	}
	if path != d.Config.Socket {
		d.log.Warn("socket is systemd's, not what the configuration says: ListenSequentialPacket= in urdmad.socket",
			"socket", path, "configured", d.Config.Socket)
		if err := d.Config.SetSocket(path, "systemd"); err != nil {
			return configError{err}
		}
	}
	if g := d.Config.SocketGroup; g != "" && !hasGroup(path, g) {
		d.log.Warn("socket_group does not apply to a socket from systemd: SocketGroup= in urdmad.socket", "socket_group", g)
	}
	return nil
}

// shareSocket opens our own socket to a group, or to its owner alone if group is "". The group is
// set before the mode, so that the wrong group never has access.
func (d *daemon) shareSocket(group string) error {
	path := d.Config.Socket
	if group == "" {
		return os.Chmod(path, 0o600)
	}
	gid, err := groupNumber(group)
	if err == nil {
		err = os.Chown(path, -1, gid)
	}
	if err == nil {
		err = os.Chmod(path, 0o660)
	}
	if err != nil {
		return fmt.Errorf("socket_group: %w", err)
	}
	d.warnOfClosedDir(filepath.Dir(path))
	return nil
}

// warnOfClosedDir warns of a directory that the group cannot enter. A directory made before the
// group was configured keeps its mode, which only its owner should change.
func (d *daemon) warnOfClosedDir(dir string) {
	if fi, err := os.Stat(dir); err == nil && fi.Mode().Perm()&0o011 == 0 {
		d.log.Warn("socket_group has no effect: its members can't pass the socket's directory", "directory", dir,
			"mode", fmt.Sprintf("%04o", fi.Mode().Perm()), "expected", "0755")
	}
}

func hasGroup(path, group string) bool {
	gid, err := groupNumber(group)
	if err != nil {
		return false
	}
	fi, err := os.Stat(path)
	if err != nil {
		return false
	}
	return int(fi.Sys().(*syscall.Stat_t).Gid) == gid
}

func groupNumber(name string) (int, error) {
	if n, err := strconv.Atoi(name); err == nil {
		return n, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(g.Gid)
}
