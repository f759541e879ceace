package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"urdma/config"
	"urdma/inspect"
	"urdma/urdma/report"

	"github.com/spf13/cobra"
)

// lookOptions are the flags of the commands that ask a running urdmad.
type lookOptions struct {
	socket string
	json   bool
	wait   time.Duration // how long to wait for urdmad's answer; 0: not at all
}

func (o *lookOptions) addSocket(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.socket, "socket", "",
		"`PATH` of urdmad's control socket (default: $URDMA_SOCKET, or the first default place with a socket)")
}

// open connects to urdmad's socket.
func (o *lookOptions) open() (*inspect.Source, error) {
	socket := config.FindSocket()
	if o.socket != "" {
		var err error
		if socket, err = filepath.Abs(o.socket); err != nil {
			return nil, fmt.Errorf("--socket %s: %w", o.socket, err)
		}
	}
	s, err := inspect.Open(socket)
	if places := config.SocketPlaces(); o.socket == "" && len(places) > 1 && errors.Is(err, inspect.ErrNotRunning) {
		return nil, fmt.Errorf("%w; looked at %s", err, strings.Join(places, ", "))
	}
	return s, err
}

// addWait adds --wait to a command.
func addWait(cmd *cobra.Command, wait *time.Duration) {
	cmd.Flags().DurationVar(wait, "wait", 0, "wait until urdmad is ready, 30 s or another `TIME` (--wait=TIME), and up to 5 s of it for its links")
	cmd.Flags().Lookup("wait").NoOptDefVal = "30s"
}

// linkTime is how long await waits for links that are down while urdmad already answers: a memif joins its other side,
// an interface comes up. Some links stay down, of a memif for example whose other side does not run.
const linkTime = 5 * time.Second

// await waits until a urdmad answers and, for a short time, until its links are up. Any error other than a missing
// urdmad or a slow one ends it at once, and so does a systemd unit that fails meanwhile or failed just before.
func (o *lookOptions) await() error {
	socket := o.socket
	if socket == "" {
		socket = os.Getenv("URDMA_SOCKET")
	}
	since, end := monotonic()-2*time.Second, time.Now().Add(o.wait)
	for turn := 1; ; turn++ {
		s, err := o.fetch()
		if err == nil {
			return o.awaitLinks(s, time.Now().Add(min(linkTime, time.Until(end))))
		}
		starts := errors.Is(err, inspect.ErrNotRunning) || errors.Is(err, inspect.ErrNoAnswer)
		if !starts || turn%30 == 0 {
			if failed := failedUnit(socket, since); failed != nil {
				return failed
			}
		}
		if !starts {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("after %v: %w", o.wait, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// awaitLinks waits until all links are up; at the end it only warns of those that are down.
func (o *lookOptions) awaitLinks(s *inspect.Snapshot, end time.Time) error {
	isDown := func(p inspect.Port) bool { return !p.LinkUp }
	for slices.ContainsFunc(s.Ports, isDown) {
		if time.Now().After(end) {
			at := slices.IndexFunc(s.Ports, isDown)
			fmt.Fprintf(os.Stderr, "urdma: warning: the link of port %s is down\n", s.Ports[at].Name)
			return nil
		}
		time.Sleep(10 * time.Millisecond)
		if now, err := o.fetch(); err == nil {
			s = now
		} else if !errors.Is(err, inspect.ErrNoAnswer) {
			return err
		}
	}
	return nil
}

// coloured adds colours if standard output is a terminal, unless the user wants none (no-color.org).
func coloured(w io.Writer) io.Writer {
	if w != os.Stdout || !isTerminal(os.Stdout) || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return w
	}
	return report.Coloured(w)
}

func (o *lookOptions) fetch() (*inspect.Snapshot, error) {
	s, err := o.open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Fetch()
}

func newStatus() *cobra.Command {
	var o lookOptions
	var verbose bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "show a summary of a running urdmad",
		Long: "Show a summary of the running urdmad: version, clients, connections, queue pairs, memory, losses and " +
			"ports. --verbose adds the poll loop, the measured costs of yields and sleeps, and the settings " +
			"derived from them (polling in urdma.json(5)).\n\nurdmad's own user and root see everything; others " +
			"see the ports and the objects of their own processes. --json prints the whole snapshot with every " +
			"object.\n\nExits with status 1 if no urdmad runs. --wait waits for one: urdmad & urdma " +
			"status --wait.",
		Example: "  urdma status\n  urdma status --wait=10s\n  sudo urdma status --socket /run/user/1000/urdma/urdmad.sock",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.wait > 0 {
				if err := o.await(); err != nil {
					return err
				}
			}
			s, err := o.fetch()
			if err != nil {
				return err
			}
			if o.json {
				return report.PrintJSON(cmd.OutOrStdout(), s)
			}
			return report.Status(coloured(cmd.OutOrStdout()), s, verbose)
		},
	}
	o.addSocket(cmd)
	cmd.Flags().BoolVar(&o.json, "json", false, "print the whole snapshot as JSON")
	addWait(cmd, &o.wait)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false,
		"also what yields and sleeps take here, and how the poll loop does")
	return cmd
}
