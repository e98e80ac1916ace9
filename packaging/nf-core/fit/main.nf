process QUANTMF_FIT {
    tag "$meta.id"
    label 'process_medium'

    conda "${moduleDir}/environment.yml"
    container "${workflow.containerEngine == 'singularity' && !task.ext.singularity_pull_docker_container
        ? 'https://depot.galaxyproject.org/singularity/quantmf:@VERSION@--h9ee0642_0'
        : 'biocontainers/quantmf:@VERSION@--h9ee0642_0'}"

    input:
    tuple val(meta), path(matrix), path(groups)

    output:
    tuple val(meta), path("${prefix}.qmf")  , emit: model
    tuple val(meta), path("${prefix}.u.tsv"), emit: u
    tuple val(meta), path("${prefix}.v.tsv"), emit: v
    tuple val(meta), path("${prefix}.html") , emit: report
    path "versions.yml"                     , emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    def samples = groups ? "-groups ${groups}" : ''
    prefix = task.ext.prefix ?: "${meta.id}"
    """
    quantmf fit \\
        ${args} \\
        ${samples} \\
        -workers ${task.cpus} \\
        -progress none \\
        -o ${prefix}.qmf \\
        -u ${prefix}.u.tsv \\
        -v ${prefix}.v.tsv \\
        -report ${prefix}.html \\
        ${matrix}

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        quantmf: \$(quantmf version | cut -d' ' -f2 | sed 's/^v//')
    END_VERSIONS
    """

    stub:
    prefix = task.ext.prefix ?: "${meta.id}"
    """
    touch ${prefix}.qmf ${prefix}.u.tsv ${prefix}.v.tsv ${prefix}.html

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        quantmf: \$(quantmf version | cut -d' ' -f2 | sed 's/^v//')
    END_VERSIONS
    """
}
