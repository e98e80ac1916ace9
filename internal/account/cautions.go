package account

// This file holds what the sizes of a table say against what a model explains of it.

import "strconv"

// fewSamples is the number of samples below which a model explains much of what is noise.
const fewSamples = 40

// Cautions are sentences about a model of k components of d features and n samples, for the summary of the
// command, the report and the page. A BQMF leaves out the components that the table does not support, so
// there are none of it.
func Cautions(method string, d, n, k int) (out []string) {
	if method == "BQMF" {
		return nil
	}
	counted := func(count int, one string) string {
		if count == 1 {
			return "1 " + one
		}
		return strconv.Itoa(count) + " " + one + "s"
	}
	if least := min(d, n); k >= least {
		out = append(out, counted(k, "component")+" can repeat any matrix of "+counted(d, "feature")+" × "+
			counted(n, "sample")+" as it is, noise included: take far fewer than "+strconv.Itoa(least))
	} else if n < fewSamples {
		out = append(out, counted(n, "sample")+" are few: part of what is explained is noise that would not "+
			"come again; \"quantmf rank\" tells how much is predicted of values that were not seen")
	}
	return out
}
