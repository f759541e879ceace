package main

import (
	"urdma/topology"

	"github.com/spf13/cobra"
)

func newFabric() *cobra.Command {
	var size topology.Size
	var output string
	var force bool
	cmd := &cobra.Command{
		Use:   "fabric",
		Short: "write a simulated InfiniBand subnet to learn with",
		Long: "Write a topology file for \"fabric\" in urdma.json(5): hosts, the switches that they are plugged into, and links, in the form that ibnetdiscover(8) prints. " +
			"Without --spines each switch is linked with each other; with them each is linked to every spine, and the route between hosts of two switches has three. " +
			"What ibnetdiscover prints of a real subnet, or of this one, can be used too. Names may be changed, and links; of a link one end suffices, and nodes need no GUID:\n" +
			"Switch 8 \"leaf1\"\n[1] \"host1\"[1]\nCa 1 \"host1\"  # \"rack 4 host1\"",
		Example: "  urdma fabric --hosts 32 --switches 4 -o /tmp/fabric.topo",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := topology.Generate(size)
			if err != nil {
				return withStatus(exitUsage, err)
			}
			if output == "" {
				_, err = cmd.OutOrStdout().Write(t.Bytes())
				return err
			}
			return writeNew(output, t.Bytes(), force)
		},
	}
	f := cmd.Flags()
	f.IntVar(&size.Hosts, "hosts", 8, "`COUNT` of hosts, beside urdmad's own ports")
	f.IntVar(&size.Switches, "switches", 2, "`COUNT` of switches that hosts are plugged into")
	f.IntVar(&size.Spines, "spines", 0, "`COUNT` of switches above those")
	f.StringVarP(&output, "output", "o", "", "`FILE` to write (default: standard output)")
	f.BoolVar(&force, "force", false, "replace a file that exists")
	return cmd
}
