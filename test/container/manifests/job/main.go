// Command job runs the steps of a GitHub workflow's only job, or of a GitLab job, on this machine as a runner does, as
// far as examples/ci and action.yml need: steps with run, and with uses of one composite action in a folder.
// It is statically linked, to run in a fresh Debian.
//
//	job FILE [ACTION-FOLDER]
//
// The variables of the environment stand for those of the project; URDMA_SERVER is the address of the "GitHub".
package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"sigs.k8s.io/yaml"
)

type step struct {
	Name, Uses, Run, Shell string
	With, Env              map[string]string
}

type action struct {
	Name, Description string
	Inputs            map[string]struct {
		Description, Default string
		Required             bool
	}
	Runs struct {
		Using string
		Steps []step
	}
}

// runner is the state that steps leave to later ones.
type runner struct {
	dir, action string // temporary files; the composite action's folder
	env         map[string]string
	path        string
}

func main() {
	dir, err := os.MkdirTemp("", "job")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	r := runner{dir: dir, action: strings.Join(os.Args[2:], ""), env: map[string]string{}, path: os.Getenv("PATH")}
	err = r.file(os.Args[1])
	r.end()
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (r *runner) file(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var workflow struct {
		Jobs map[string]struct{ Steps []step }
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		return err
	}
	for _, job := range workflow.Jobs {
		return r.steps(job.Steps, nil)
	}
	var pipeline map[string]struct {
		BeforeScript []string `json:"before_script"`
		Script       []string
	}
	if err := yaml.Unmarshal(text, &pipeline); err != nil {
		return err
	}
	for _, job := range pipeline {
		return r.run(step{Run: strings.Join(append(job.BeforeScript, job.Script...), "\n")}, nil)
	}
	return fmt.Errorf("%s has no job", name)
}

func (r *runner) steps(steps []step, inputs map[string]string) error {
	for _, s := range steps {
		fmt.Printf("##[group] %s%s\n", s.Name, s.Uses)
		var err error
		switch {
		case s.Uses == "":
			err = r.run(s, inputs)
		case !strings.HasPrefix(s.Uses, "actions/"): // GitHub's own: there is nothing to check out
			err = r.use(s)
		}
		if err != nil {
			return fmt.Errorf("step %q: %w", s.Name+s.Uses, err)
		}
	}
	return nil
}

func (r *runner) use(s step) error {
	text, err := os.ReadFile(filepath.Join(r.action, "action.yml"))
	if err != nil {
		return err
	}
	var a action
	if err := yaml.UnmarshalStrict(text, &a); err != nil {
		return err
	}
	if a.Runs.Using != "composite" {
		return fmt.Errorf("the action is %q, not composite", a.Runs.Using)
	}
	inputs := map[string]string{}
	for name, input := range a.Inputs {
		inputs[name] = input.Default
	}
	for name, value := range s.With {
		if _, known := inputs[name]; !known {
			return fmt.Errorf("the action has no input %q", name)
		}
		if inputs[name], err = evaluate(value, nil); err != nil {
			return err
		}
	}
	return r.steps(a.Runs.Steps, inputs)
}

var expression = regexp.MustCompile(`\$\{\{ *(.*?) *\}\}`)

// evaluate replaces the expressions of a text.
func evaluate(text string, inputs map[string]string) (_ string, err error) {
	github := map[string]string{"server_url": os.Getenv("URDMA_SERVER"), "action_repository": "OWNER/urdma"}
	text = expression.ReplaceAllStringFunc(text, func(found string) string {
		context, name, _ := strings.Cut(expression.FindStringSubmatch(found)[1], ".")
		value, known := map[string]map[string]string{"inputs": inputs, "github": github}[context][name]
		if context == "vars" {
			value, known = os.Getenv(name), true
		}
		if !known {
			err = fmt.Errorf("%s has no value", found)
		}
		return value
	})
	return text, err
}

// run runs a script with the shell's options of a runner.
func (r *runner) run(s step, inputs map[string]string) error {
	script, files := filepath.Join(r.dir, "script"), map[string]string{}
	env := map[string]string{"RUNNER_TEMP": r.dir, "GITHUB_ACTION_PATH": r.action, "RUNNER_TRACKING_ID": r.dir}
	for _, name := range []string{"GITHUB_ENV", "GITHUB_PATH"} {
		files[name] = filepath.Join(r.dir, name)
		if err := os.WriteFile(files[name], nil, 0o600); err != nil {
			return err
		}
	}
	maps.Copy(env, files)
	maps.Copy(env, r.env)
	for name, value := range s.Env {
		var err error
		if env[name], err = evaluate(value, inputs); err != nil {
			return err
		}
	}
	if err := os.WriteFile(script, []byte(s.Run), 0o600); err != nil {
		return err
	}
	c := exec.Command("bash", "-e", script)
	if s.Shell == "bash" {
		c = exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", script)
	}
	c.Env = append(os.Environ(), "PATH="+r.path)
	for name, value := range env {
		c.Env = append(c.Env, name+"="+value)
	}
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return err
	}
	return r.keep(files)
}

// keep reads what a step left to later ones.
func (r *runner) keep(files map[string]string) error {
	env, err := os.ReadFile(files["GITHUB_ENV"])
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(env)) {
		name, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !found {
			return fmt.Errorf("GITHUB_ENV has the line %q", line)
		}
		r.env[name] = value
	}
	path, err := os.ReadFile(files["GITHUB_PATH"])
	for line := range strings.Lines(string(path)) {
		r.path = strings.TrimSuffix(line, "\n") + ":" + r.path
	}
	return err
}

// end ends the processes that steps left behind; a runner finds them by the same variable.
func (r *runner) end() {
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range environments {
		environment, _ := os.ReadFile(name)
		if !bytes.Contains(environment, []byte("RUNNER_TRACKING_ID="+r.dir+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
}
