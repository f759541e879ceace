package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"urdma/config"

	"github.com/spf13/cobra"
)

func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "check, show and create configuration files",
		Long:  "Check a urdma.json(5), show what it amounts to, or write one to start from.",
		Args:  usage(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigCheck(), newConfigShow(), newConfigInit())
	return cmd
}

func newConfigCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "report everything that is wrong with a file",
		Long: "Report everything that is wrong with a configuration file: for each error the line, the JSON path, " +
			"the value found and the values allowed. Here unknown properties are errors, with the nearest known " +
			"name; urdmad itself warns about them and goes on. Settings that are allowed but seldom intended give " +
			"a warning: networks that overlap, a core that this machine lacks. A topology file (\"fabric\") is " +
			"read, too. Whether devices and groups exist is only checked when urdmad starts. FILE - is standard " +
			"input.",
		Example:               "  urdma config check /etc/urdma/urdma.json",
		DisableFlagsInUseLine: true, // it has no flags
		Args:                  usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := config.LoadStrict(args[0])
			if err != nil {
				return withStatus(exitUsage, err)
			}
			if _, err := c.Topology(); err != nil {
				return withStatus(exitUsage, err)
			}
			for _, w := range c.Warnings() {
				fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: correct\n", args[0])
			return err
		},
	}
}

func newConfigShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [FILE]",
		Short: "show the effective configuration and the origin of each value",
		Long: "Show the configuration that urdmad would run with: the values of the file, and defaults for all " +
			"others. Each value has its origin: a line of the file, an environment variable, or another setting. " +
			"Without FILE, show the built-in default.",
		Example: "  urdma config show /etc/urdma/urdma.json",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := loadOrDefault(args, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if asJSON {
				_, err = cmd.OutOrStdout().Write(c.JSON())
				return err
			}
			return printSettings(cmd.OutOrStdout(), c)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as a urdma.json with every default filled in")
	return cmd
}

func loadOrDefault(args []string, warnings io.Writer) (*config.Config, error) {
	if len(args) == 0 {
		return config.Default(), nil
	}
	c, err := config.Load(args[0], func(w string) { fmt.Fprintln(warnings, "warning:", w) })
	return c, withStatus(exitUsage, err)
}

func printSettings(out io.Writer, c *config.Config) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SETTING\tVALUE\tFROM")
	for _, s := range c.Settings {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Path, s.Value, s.Origin)
	}
	return w.Flush()
}
