// What .ci/packaging runs: the module on the matrix and the groups of --matrix and --groups.
nextflow.enable.dsl = 2

params.groups = null

include { QUANTMF_FIT } from '../main.nf'

workflow {
    QUANTMF_FIT([[id: 'test'], file(params.matrix, checkIfExists: true), params.groups ? file(params.groups) : []])
    QUANTMF_FIT.out.v.view { "v ${it[1]}" }
    QUANTMF_FIT.out.versions.view { "versions ${it.text}" }
}
