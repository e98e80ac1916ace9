// Command paper makes every experiment of the paper with the public functions of quantmf, and writes the
// figures and the tables of README.md:
//
//	go run . [all|timing|toy|settings|larger|genomics|survival|page|data] [-quick] [-data FOLDER]
//
// An experiment writes its numbers to results/NAME.json, with -quick to results/quick/NAME.json. page draws
// figures/ and fills README.md from these files and from nothing else. Finished fits are kept in cache/, so a
// command that was stopped goes on where it was. They are made again when this program or the package has
// changed, and with -again. FOLDER has the real data; without it only the experiments on synthetic data are
// made. data says where the real data are published, how FOLDER's files are made of them, and checks these.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/quantmf/quantmf/paper/internal/data"
)

// experiments are in the order of the page. A run returns the struct that is written to the results.
var experiments = []struct {
	name string
	run  func(*session) (any, error)
	page func(*writer) error
}{
	{"timing", timing, section("timing", timingPage)},
	{"toy", toy, section("toy", toyPage)},
	{"settings", settings, section("settings", settingsPage)},
	{"larger", larger, section("larger", largerPage)},
	{"genomics", genomics, section("genomics", genomicsPage)},
	{"survival", survive, section("survival", survivalPage)},
}

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "paper:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	name := "all"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("paper", flag.ExitOnError)
	quick := flags.Bool("quick", false, "fewer seeds, epochs and samples: minutes instead of hours")
	folder := flags.String("data", "", "the folder with the real data")
	again := flags.Bool("again", false, "make fits again that are in cache/")
	flags.Usage = func() {
		fmt.Fprintln(os.Stderr,
			"go run . [all|timing|toy|settings|larger|genomics|survival|page|data] [-quick] [-data FOLDER]")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag; the name of an experiment comes first", flags.Arg(0))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	switch name {
	case "page":
		return writePage()
	case "data":
		return listData(data.Folder(*folder))
	}
	found := false
	for _, e := range experiments {
		if name != "all" && name != e.name {
			continue
		}
		found = true
		s := newSession(ctx, e.name, *quick, *again, data.Folder(*folder))
		s.say("%s setting", s.setting())
		out, err := e.run(s)
		switch {
		case errors.Is(err, data.ErrMissing) && (name == "all" || *folder == ""):
			s.say("left out: %v (see go run . data)", err)
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", e.name, err)
		}
		if err := s.save(out); err != nil {
			return err
		}
	}
	if !found {
		flags.Usage()
		return errors.New("no such experiment: " + name)
	}
	return writePage()
}

// listData prints where the data are published, and which files are there and right.
func listData(folder data.Folder) error {
	for _, p := range data.List {
		fmt.Printf("%s\n  published: %s\n  made so:   %s\n", p.Set, p.Published, p.Made)
		for _, name := range p.Files() {
			status := "SHA-256 of the text " + data.Sums[name]
			if folder != "" {
				status = folder.Check(name)
			}
			fmt.Printf("  %-40s %s\n", name, status)
		}
	}
	return nil
}
