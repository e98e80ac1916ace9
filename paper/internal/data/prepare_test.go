package data

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// published has the head and the last samples of the first NMF run of aml, as published.
const published = `,0,1,2,3,4,5,6,7,8,9
TCGA.AB.3009.03,5.1546535,34.009357,0.044807136,44.079117,10.659088,10.971313,0.54844666,1.5291953,36.382885,7.9516034
TCGA.AB.3011.03,6.949862,4.256224,28.635067,22.07351,1.0182454e-35,9.600179,0.49537963,87.89948,8.667577,3.042257
TCGA.AB.3012.03,22.01905,42.109108,1.9748505,43.41751,7.3922086e-36,0.0,0.0,0.0,50.28006,3.0508013
`

const publishedSurvival = `"PatientID"	"Survival"	"Death"
"TCGA-AB-3011-11"	"1885"	"0"
"TCGA-AB-3011-03"	"1885"	"0"
"TCGA-AB-3012-03"	"1887"	"0"
"TCGA-AB-3009-03"	"577"	"1"
"TCGA-AB-2887-03"	""	""
`

// Published factors are written as the file that the experiments read.
func TestFactorsAreThoseOfTheFile(t *testing.T) {
	text, samples, err := factors([]byte(published))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(samples, " ") != "TCGA.AB.3009.03 TCGA.AB.3011.03 TCGA.AB.3012.03" {
		t.Errorf("samples %v", samples)
	}
	if got := survivalOf([]byte(publishedSurvival),
		append(samples, "TCGA.AB.2887.03")); got != "sample\ttime\tevent\nTCGA.AB.3009.03\t577\t1\nTCGA.AB.3011.03\t1885\t0\nTCGA.AB.3012.03\t1887\t0\nTCGA.AB.2887.03\t0\t0\n" {
		t.Errorf("survival:\n%s", got)
	}
	f := Folder("../../../../shared/data")
	if _, err := os.Stat(string(f)); err != nil {
		t.Skip("no data here")
	}
	whole, err := f.Text("tcga-qmf-authors/aml/nmf_init1.tsv.gz")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for i, line := range strings.Split(strings.TrimSpace(string(whole)), "\n") {
		fields := strings.Split(line, "\t")
		if i > 0 {
			want.WriteString("\n")
		}
		want.WriteString(fields[0] + "\t" + strings.Join(fields[len(fields)-3:], "\t"))
	}
	if text != want.String()+"\n" {
		t.Errorf("%s\nis to be\n%s", text, want.String())
	}
}

// Pictures with one grey value a block are read as these values.
func TestPixels(t *testing.T) {
	folder := t.TempDir()
	for s := 1; s <= 40; s++ {
		name := filepath.Join(folder, "s"+itoa(s))
		if err := os.MkdirAll(name, 0o755); err != nil {
			t.Fatal(err)
		}
		for p := 1; p <= 10; p++ {
			pgm := []byte("P5\n92 112\n255\n")
			for y := range 112 {
				for x := range 92 {
					v := (x/4 + 2*(y/4) + s + p) % 256
					if x%4 == 0 && y%4 == 0 {
						v += 8 // half a grey value more in the mean
					}
					pgm = append(pgm, byte(v))
				}
			}
			if err := os.WriteFile(filepath.Join(name, itoa(p)+".pgm"), pgm, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	text, err := pixels(folder)
	if err != nil {
		t.Fatal(err)
	}
	table, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if table.X.Rows != 644 || table.X.Cols != 400 || table.Features[24] != "x02_y02" ||
		table.Samples[11] != "s2_2" {
		t.Errorf("%d × %d, %s, %s", table.X.Rows, table.X.Cols, table.Features[24], table.Samples[11])
	}
	if got := table.X.At(24, 11); got != 1+2+2+2+0.5 {
		t.Errorf("pixel x02_y02 of s2_2: %v", got)
	}
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}
