package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"urdma/inspect"
	"urdma/urdma/doctor"
	"urdma/urdma/report"

	"github.com/spf13/cobra"
)

// reportOptions are the flags of urdma report.
type reportOptions struct {
	doctorOptions
	output string
}

func newReport() *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report",
		Short: "collect what a bug report needs in one file",
		Long: "Write a gzipped tar archive with all that a bug report needs: versions, the machine, urdma status and " +
			"every urdma show, urdma doctor, the configuration, and the last lines of urdmad's log if the journal " +
			"has them. It contains no data of memory or messages, no command lines or environments, and no secrets " +
			"of a configuration. It does contain names of programs, addresses and interfaces: check it before you " +
			"publish it. It works without a running urdmad, with less content.",
		Example: "  urdma report\n  sudo urdma report -o /tmp/urdma.tar.gz",
		Args:    usage(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addSocket(cmd)
	cmd.Flags().StringVarP(&o.output, "output", "o", "",
		"`FILE` to write, which must not exist yet (default: urdma-report-TIME.tar.gz)")
	cmd.Flags().StringVarP(&o.config, "config", "c", "", "configuration `FILE` (default: that of the running urdmad)")
	return cmd
}

func (o *reportOptions) run(cmd *cobra.Command) error {
	if o.output == "" {
		o.output = "urdma-report-" + time.Now().Format("20060102-150405") + ".tar.gz"
	}
	f, err := os.OpenFile(o.output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(o.write(f), f.Close())
	if err != nil {
		return errors.Join(err, os.Remove(o.output))
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is written; look at it before you publish it: tar -xzOf %[1]s | less\n",
		o.output)
	return err
}

// part is a file of the bundle. If its content can't be obtained, the file says why.
type part struct {
	name  string
	write func(io.Writer) error
}

func (o *reportOptions) write(w io.Writer) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, p := range o.parts() {
		var b bytes.Buffer
		if err := p.write(&b); err != nil {
			fmt.Fprintln(&b, "not to be had:", err)
		}
		text := withoutSecrets(b.Bytes())
		if err := t.WriteHeader(&tar.Header{Name: "urdma-report/" + p.name, Mode: 0o600, Size: int64(len(text)),
			ModTime: time.Now()}); err != nil {
			return err
		}
		if _, err := t.Write(text); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

// secrets matches the secrets in a configuration: arguments of a memif.
var secrets = regexp.MustCompile(`secret=[^,"\s\\]*`)

func withoutSecrets(text []byte) []byte { return secrets.ReplaceAll(text, []byte("secret=REMOVED")) }

func (o *reportOptions) parts() []part {
	snapshot, missing := o.fetch()
	if missing == nil {
		for i := range snapshot.Clients {
			snapshot.Clients[i].Line = "" // may contain secrets
		}
	}
	ofDaemon := func(write func(io.Writer) error) func(io.Writer) error {
		return func(w io.Writer) error {
			if missing != nil {
				return missing
			}
			return write(w)
		}
	}
	return []part{
		{"machine.txt", machineText},
		{"status.txt", ofDaemon(func(w io.Writer) error { return report.Status(w, snapshot, true) })},
		{"show.txt", ofDaemon(func(w io.Writer) error { return showAll(w, snapshot) })},
		{"snapshot.json", ofDaemon(func(w io.Writer) error { return report.PrintJSON(w, snapshot) })},
		{"doctor.txt", o.doctorText},
		{"urdma.json", o.configText},
		{"log.txt", ofDaemon(func(w io.Writer) error { return journal(w, snapshot.Daemon.PID) })},
	}
}

func machineText(w io.Writer) error {
	fmt.Fprintf(w, "urdma %s\n", version)
	for _, file := range []string{"/proc/version", "/etc/os-release", "/proc/cmdline", "/proc/self/limits",
		"/proc/meminfo"} {
		text, err := os.ReadFile(file)
		fmt.Fprintf(w, "\n%s:\n%s", file, text)
		if err != nil {
			fmt.Fprintln(w, err)
		}
	}
	return nil
}

func showAll(w io.Writer, s *inspect.Snapshot) error {
	for i := range report.Kinds {
		k := &report.Kinds[i]
		if k.Missing != "" {
			continue
		}
		fmt.Fprintf(w, "urdma show %s\n", k.Name)
		if err := k.Table(w, s); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	return nil
}

func (o *reportOptions) doctorText(w io.Writer) error {
	facts, err := o.facts(nil)
	if err != nil {
		return err
	}
	return doctor.Print(w, doctor.Examine(facts))
}

func (o *reportOptions) configText(w io.Writer) error {
	facts, err := o.facts(nil)
	switch {
	case err != nil:
		return err
	case facts.ConfigError != nil:
		return facts.ConfigError
	}
	_, err = w.Write(facts.Config.JSON())
	return err
}

// journalLines is the number of lines from the end of urdmad's log that a report contains.
const journalLines = 500

func journal(w io.Writer, pid int) error {
	out, err := exec.Command("journalctl", "--no-pager", "-o", "short-precise", "-n", strconv.Itoa(journalLines),
		"_PID="+strconv.Itoa(pid)).CombinedOutput()
	if _, bad := w.Write(out); bad != nil {
		return bad
	}
	return err
}
