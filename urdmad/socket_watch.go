package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"urdma/ancillary"
	"urdma/config"
	"urdma/urdmad/control"
)

// watchSocket sends when a file disappears from the control socket's directory or is renamed into
// it, until ctx ends. It costs nothing while neither happens.
func (d *daemon) watchSocket(ctx context.Context) <-chan struct{} {
	gone := make(chan struct{}, 1)
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err == nil {
		d.inotify = os.NewFile(uintptr(fd), "inotify")
		err = d.watchDir()
	}
	if err != nil {
		d.log.Warn("nobody will notice if the control socket is removed", "error", err)
		return gone
	}
	stop := context.AfterFunc(ctx, func() { d.inotify.Close() })
	d.Background.Go(func() {
		defer stop()
		b := make([]byte, 4096)
		for {
			if _, err := d.inotify.Read(b); err != nil {
				return // closed
			}
			select {
			case gone <- struct{}{}:
			default: // a check is pending already
			}
		}
	})
	return gone
}

// watchDir watches the present directory.
func (d *daemon) watchDir() (err error) {
	raw, err := d.inotify.SyscallConn()
	if err != nil {
		return err
	}
	var watched error
	err = raw.Control(func(fd uintptr) {
		_, watched = unix.InotifyAddWatch(int(fd), filepath.Dir(d.Config.Socket),
			unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO|unix.IN_ONLYDIR)
	})
	return errors.Join(err, watched)
}

// anewTime is how long after urdmad made the socket anew, or tried to, it is checked once more: its directory may be in
// the midst of being removed, before it is watched.
const anewTime = time.Second

// checkSocket makes the control socket again if it is gone, and logs that. Another process's
// socket in its place stays: programs then reach that urdmad. again says when to check once more; nil:
// when the watch says so.
func (d *daemon) checkSocket() (again <-chan time.Time) {
	fi, err := os.Lstat(d.Config.Socket)
	switch {
	case err == nil && os.SameFile(fi, d.socketFile) && !d.lost:
	case err == nil && !os.SameFile(fi, d.socketFile):
		if d.socketFile != nil {
			d.log.Error("the control socket was replaced: programs that start now do not reach this urdmad", "socket",
				d.Config.Socket)
		}
		d.socketFile = nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		if d.lost { // which is logged
			return time.After(anewTime)
		}
		d.log.Warn("looking after the control socket", "error", err)
	case d.activated:
		d.log.Error("the control socket was removed: programs that start now do not find urdmad; systemctl restart urdmad.socket makes it anew", "socket", d.Config.Socket)
	default:
		err := d.makeSocketAnew(err != nil)
		switch {
		case err == nil:
			d.log.Warn("the control socket was removed; it is made anew", "socket", d.Config.Socket)
		case !d.lost:
			d.log.Error("the control socket was removed and cannot be made anew: programs that start now do not find urdmad",
				"error", err)
		}
		d.lost = err != nil
		return time.After(anewTime)
	}
	return nil
}

// makeSocketAnew makes the control socket again if it is missing, and the files of features that were removed
// with it.
func (d *daemon) makeSocketAnew(missing bool) error {
	if missing {
		old := d.listener
		if err := d.openSocket(); err != nil {
			return err
		}
		old.SetUnlinkOnClose(false)
		_ = new(ancillary.Closer).Unlisten(old) // no program can reach it any more
		d.accept()
	}
	if err := d.restore(); err != nil {
		return err
	}
	return d.watchDir()
}

// openSocket makes the control socket, and its directory.
func (d *daemon) openSocket() error {
	gid := config.NoGroup
	if d.socketGroup != "" {
		var err error
		if gid, err = groupNumber(d.socketGroup); err != nil {
			return fmt.Errorf("socket_group: %w", err)
		}
	}
	if err := config.MakeSocketDir(d.Config.Socket, gid); err != nil {
		return err
	}
	l, err := control.Listen(d.Config.Socket, 0o600)
	if err != nil {
		return err
	}
	d.listener = l
	if d.socketGroup != "" { // else the mode stays as it was made
		if err := d.shareSocket(d.socketGroup); err != nil {
			return err
		}
	}
	d.socketFile, err = os.Lstat(d.Config.Socket)
	return err
}

// accept serves clients until the listener is closed.
func (d *daemon) accept() {
	l := d.listener
	d.Background.Go(func() { _ = d.Server.Serve(l) }) // returns without an error when the listener is closed
}
