package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"urdma/inject"
	"urdma/inspect"
	"urdma/urdma/report"
	"urdma/verbs/abi"

	"github.com/spf13/cobra"
)

// injectOptions are the flags of urdma inject.
type injectOptions struct {
	lookOptions
	file string
}

func newInject() *cobra.Command {
	var o injectOptions
	cmd := &cobra.Command{
		Use:   "inject STATEMENT | list | hits NUMBER | clear [NUMBER]",
		Short: "inject errors, to see how a program handles them",
		Long: "Inject errors on purpose. An event happens at once. A rule applies to all matching events from then " +
			"on, until it has hit count of them, its time (for=) is over, urdma inject clear removes it, or the " +
			"process or queue pair that it names ends. urdma inject prints the number of a rule; hits NUMBER prints how " +
			"many events it has hit.\n\nEvents:\ncq HANDLE [event], qp QPN [EVENT], srq HANDLE [EVENT], device " +
			"NAME, port NAME down|up|EVENT: EVENT is a name of ibv_get_async_event(3), such as QP_ACCESS_ERR. " +
			"Without EVENT it is the object's error, which also puts the object, and the queue pairs that use it, " +
			"into the error state. cq HANDLE event sends a completion event without a completion. Each process has " +
			"handles of its own; pid=PID selects the process if several have the handle.\n\nerrors PORT " +
			"COUNTER[=N]: adds N (1) to an error counter of a port of the InfiniBand subnet, named as in " +
			"/sys/class/infiniband/*/ports/*/counters, such as symbol_error. PORT is NODE, or NODE/NUMBER if it " +
			"has several ports; NODE is a device, a NodeDescription of one word or a GUID after " +
			"0x.\n\nRules:\nsend status=STATUS [opcode=OPCODE]: a posted send completes with STATUS of enum " +
			"ibv_wc_status when its turn comes, and its queue pair goes to the error state.\nreceive " +
			"status=STATUS: the same for a receive when its message arrives.\nrespond " +
			"answer=access|operation|invalid|rnr [opcode=SEND|RDMA_WRITE|RDMA_READ|ATOMIC]: the responder refuses " +
			"or delays a message; the peer's send completes with REM_ACCESS_ERR, REM_OP_ERR, REM_INV_REQ_ERR, or " +
			"RNR_RETRY_EXC_ERR when its retries run out.\ncall NAME errno=ERRNO|delay=TIME: a call such as " +
			"ibv_reg_mr or rdma_connect fails, or is delayed; ibv_post_send, ibv_post_recv and ibv_post_srq_recv " +
			"fail only with urdma exec --inject and urdma_inject.h.\nevent delay=TIME: a completion event is delayed.\ncm delay=TIME " +
			"[type=EVENT]: an event of rdma_cm and later ones on its channel are delayed.\ncm reject: a listener " +
			"refuses a connection request.\nwire PORT loss=P|duplicate=P|corrupt=P|reorder=P " +
			"[late=TIME]|delay=TIME|jitter=TIME|rate=BITS|mtu=BYTES|partition: faults of a port's packets " +
			"(way=in|out|both, peer=ADDRESS, burst=N packets per loss).\n\nEach rule accepts qp=QPN (send, " +
			"receive, respond), pid=PID, nth=N (the first event to hit), for send bytes=SIZE (the first is the one with " +
			"which all have more bytes), p=PROBABILITY and seed=SEED, count=N|all " +
			"(1; with p all) and for=TIME. The same seed and the same events give the same hits.\n\nScenarios, " +
			"with -f FILE or semicolons: statements are carried out one after the other. wait TIME delays the " +
			"following statements; after with a rule without an effect delays them until the rule has " +
			"hit.\n\nUsers may inject errors into their own processes, urdmad's own user and root into all " +
			"processes and ports. Injected errors are logged, and counted in urdma show inject and in metrics. " +
			"Without rules, injection costs next to nothing.",
		Example: "  urdma inject send status=RETRY_EXC_ERR qp=7e nth=3\n" +
			"  urdma inject respond answer=access opcode=RDMA_WRITE p=0.1 seed=7\n" +
			"  urdma inject wire urdma0 loss=1% burst=3 delay=2ms peer=10.2.0.7 seed=7 for=10s\n" +
			"  urdma inject call ibv_reg_mr errno=ENOMEM pid=4711\n" +
			"  urdma inject qp 7e QP_ACCESS_ERR\n" +
			"  urdma inject errors urdma0 symbol_error=12 link_downed\n" +
			"  urdma inject 'after send opcode=RDMA_WRITE nth=3; port urdma0 down; wait 200ms; port urdma0 up'\n" +
			"  urdma exec --inject 'call ibv_post_send errno=ENOMEM nth=100' -- ib_write_bw -R 10.2.0.100\n" +
			"  urdma inject list\n  urdma inject clear",
		Args: func(_ *cobra.Command, args []string) error {
			if (len(args) == 0) == (o.file == "") {
				return withStatus(exitUsage, errors.New("what goes wrong? a STATEMENT, list, hits NUMBER, clear [NUMBER], or -f FILE"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == "list" {
				return o.list(cmd.OutOrStdout())
			}
			text := strings.Join(args, " ")
			if o.file != "" {
				text = "@" + o.file
			}
			return o.run(cmd.OutOrStdout(), text)
		},
	}
	o.addSocket(cmd)
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "`FILE` with a scenario, one statement per line; - is standard input")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the list as a JSON array")
	return cmd
}

// statementsOf reads statements, or a file named after an @, and checks their syntax.
func statementsOf(text string) (string, error) {
	if name, ok := strings.CutPrefix(text, "@"); ok {
		b, err := []byte(nil), error(nil)
		if name == "-" {
			b, err = io.ReadAll(io.LimitReader(os.Stdin, abi.InjectBytes))
		} else {
			b, err = os.ReadFile(name)
		}
		if err != nil {
			return "", err
		}
		text = string(b)
	}
	if _, err := inject.Parse(text); err != nil {
		return "", withStatus(exitUsage, err)
	}
	if len(text) >= abi.InjectBytes {
		return "", withStatus(exitUsage,
			fmt.Errorf("%d bytes of statements, expected %d at most", len(text), abi.InjectBytes-1))
	}
	return text, nil
}

func (o *injectOptions) run(w io.Writer, text string) error {
	text, err := statementsOf(text)
	if err != nil {
		return err
	}
	source, err := o.open()
	if err != nil {
		return err
	}
	defer source.Close()
	answer, err := source.Inject(text)
	if refused := new(inspect.Refusal); errors.As(err, &refused) {
		if why := refusals[refused.Errno]; why != "" {
			return fmt.Errorf("%w: %s", err, why)
		}
	}
	if err == nil && (answer != 0 || strings.HasPrefix(strings.TrimSpace(text), "hits")) {
		_, err = fmt.Fprintln(w, strconv.FormatUint(answer, 10))
	}
	return err
}

// refusals explains urdmad's errors.
var refusals = map[syscall.Errno]string{
	syscall.EPERM:  "ports are urdmad's own user's and root's to break",
	syscall.ENOENT: "you have no such object or rule; urdma show and urdma inject list have them",
	syscall.ESRCH:  "no such process of yours uses urdmad; urdma show client lists them",
	syscall.ENODEV: "no such port; urdma show port lists urdmad's, ibnetdiscover those of the subnet",
	syscall.ENOTUNIQ: "several processes have an object with that handle, and pid=PID says whose; or several nodes " +
		"that name, or the node several ports",
	syscall.ENXIO:  "that completion queue has no channel",
	syscall.EDQUOT: "there are as many rules as may be; urdma inject clear ends them",
	syscall.EOPNOTSUPP: "posts fail only by urdma exec --inject and urdma_inject.h; a loopback port has no wire, but with two workers in " +
		"urdma.json programs of this machine exchange packets; a tcp port's is the kernel's (tc-netem(8)); and urdmad has " +
		"to be as new as urdma",
}

func (o *injectOptions) list(w io.Writer) error {
	s, err := o.fetch()
	if err != nil {
		return err
	}
	kind := report.Find("inject")
	if o.json {
		return kind.JSON(w, s)
	}
	return kind.Table(w, s)
}
