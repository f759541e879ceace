package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// newPrepare is the command of the init container: a directory of the node belongs to root, and the image has no shell.
func newPrepare() *cobra.Command {
	var user, group int
	cmd := &cobra.Command{
		Use:   "prepare DIRECTORY",
		Short: "give the directory of urdmad's control socket to its user and group",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if user < 0 || group < 0 {
				return fmt.Errorf("--user %d --group %d: expected both", user, group)
			}
			if err := os.MkdirAll(args[0], 0o750); err != nil {
				return err
			}
			if err := os.Chown(args[0], user, group); err != nil {
				return err
			}
			return os.Chmod(args[0], 0o770|os.ModeSetgid)
		},
	}
	cmd.Flags().IntVar(&user, "user", -1, "`UID` of urdmad's user")
	cmd.Flags().IntVar(&group, "group", -1, "`GID` of the group that may use urdmad")
	return cmd
}
