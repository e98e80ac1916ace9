# Models: features in rows, samples in columns, as genes and patients are kept in R.

# numbers_of returns what the engine takes of a matrix, its dimnames, and whether cells are missing.
numbers_of <- function(x) {
  if (methods::is(x, "SummarizedExperiment")) x <- SummarizedExperiment::assay(x)
  if (is.data.frame(x)) x <- as.matrix(x)
  if (methods::is(x, "sparseMatrix")) {
    by_row <- methods::as(methods::as(Matrix::t(x), "CsparseMatrix"), "generalMatrix")
    values <- if (methods::is(by_row, "nMatrix")) rep(1, length(by_row@i)) else as.double(by_row@x)
    of <- list(columns = ncol(x), start = array_of(by_row@p, "i8"), index = array_of(by_row@i, "u4"), values = array_of(values))
    return(list(x = of, names = dimnames(x), missing = anyNA(values)))
  }
  if (!is.matrix(x) || !(is.numeric(x) || is.logical(x))) {
    stop("quantmf: x must be a matrix of numbers, features x samples, a sparse Matrix or a SummarizedExperiment")
  }
  storage.mode(x) <- "double"
  list(x = array_of(unname(x)), names = dimnames(x), missing = anyNA(x))
}

# camel returns the name by which the engine knows an option: learning_rate is learningRate.
camel <- function(name) gsub("_([a-z])", "\\U\\1", name, perl = TRUE)

fit <- function(method, x, k, options) fitted_by("fit", list(method = method, rank = k), x, options)

# fitted_by returns the model that a call makes of x.
fitted_by <- function(call, args, x, options) {
  of <- numbers_of(x)
  options <- Filter(Negate(is.null), options)
  names(options) <- camel(names(options))
  if (!is.null(options$model)) options$model <- options$model$bytes
  if (!is.null(options$seed)) options$seed <- format(options$seed, scientific = FALSE, trim = TRUE)
  options <- lapply(options, function(of) if (is.numeric(of) && length(of) > 1) array_of(unname(of)) else of)
  if (of$missing) options$missingValues <- TRUE
  if (length(options) == 0) options <- structure(list(), names = character())
  modelled(call_program(call, c(args, list(x = of$x, options = options))), of$names)
}

# modelled returns a model of what the engine says of it.
modelled <- function(of, names) {
  if (is.null(names)) names <- list(NULL, NULL)
  components <- paste0("c", seq_len(ncol(of$u)))
  dimnames(of$u) <- list(names[[1]], components)
  dimnames(of$v) <- list(components, names[[2]])
  for (text in of$warnings) warning(text, call. = FALSE)
  structure(of, class = "quantmf")
}

fit_nmf <- function(x, k, loss = "kl", ...) fit("nmf", x, k, list(loss = loss, ...))
fit_qmf <- function(x, k, loss = "kl", ...) fit("qmf", x, k, list(loss = loss, ...))
fit_qmfq <- function(x, k, loss = "kl", ...) fit("qmfq", x, k, list(loss = loss, ...))
fit_bqmf <- function(x, k = 0, ...) fit("bqmf", x, k, list(...))

consensus <- function(x, k, seeds = 20, loss = "frobenius", ...) {
  fitted_by("consensus", list(rank = k, seeds = seeds), x, list(loss = loss, ...))
}

print.quantmf <- function(x, ...) {
  bayesian <- x$method == "bqmf"
  cat(sprintf(
    "%s of %d features and %d samples by %d components, %s %.4g after %d epochs\n",
    toupper(x$method), nrow(x$u), ncol(x$v), ncol(x$u),
    if (bayesian) "loss of cells that are left out" else "loss",
    if (bayesian) x$leaveOneOut else x$history[x$best + 1], x$best
  ))
  invisible(x)
}

named <- function(cells, features, samples) {
  dimnames(cells) <- list(features, samples)
  cells
}

fitted.quantmf <- function(object, ...) {
  named(call_program("reconstruct", list(model = object$bytes)), rownames(object$u), colnames(object$v))
}

predict.quantmf <- function(object, newdata, type = c("cells", "coordinates", "scores", "interval"), level = 0.95, ...) {
  type <- match.arg(type)
  of <- if (missing(newdata)) NULL else numbers_of(newdata)
  samples <- if (is.null(of)) colnames(object$v) else of$names[[2]]
  if (type == "interval") {
    args <- list(model = object$bytes, x = of$x, p = level)
    bounds <- call_program(if (is.null(of)) "interval" else "predictInterval", Filter(Negate(is.null), args))
    return(lapply(bounds[c("low", "high")], named, features = rownames(object$u), samples = samples))
  }
  if (is.null(of)) {
    switch(type, cells = return(fitted(object)), coordinates = return(object$v))
    stop("quantmf: scores are of newdata")
  }
  said <- call_program(c(cells = "predict", coordinates = "transform", scores = "scores")[[type]], list(model = object$bytes, x = of$x))
  switch(type,
    cells = named(said, rownames(object$u), samples),
    coordinates = named(said, rownames(object$v), samples),
    scores = stats::setNames(said, samples)
  )
}

# update gives a model by fit_bqmf new samples to learn from too.
update.quantmf <- function(object, newdata, ...) {
  of <- modelled(call_program("updated", list(model = object$bytes, x = numbers_of(newdata)$x)), NULL)
  dimnames(of$u) <- dimnames(object$u)
  dimnames(of$v) <- dimnames(object$v)
  of
}

impute <- function(x, k = 0, level = NULL, ...) {
  model <- fit_bqmf(x, k, ...)
  x <- if (methods::is(x, "SummarizedExperiment")) SummarizedExperiment::assay(x) else as.matrix(x)
  hidden <- is.na(x)
  x[hidden] <- fitted(model)[hidden]
  if (!is.null(level)) {
    for (bound in names(of <- predict(model, type = "interval", level = level))) {
      attr(x, bound) <- replace(x, hidden, of[[bound]][hidden])
    }
  }
  x
}

write_model <- function(model, path) writeBin(model$bytes, path)

read_model <- function(path) {
  of <- call_program("open", list(model = readBin(path, "raw", file.size(path))))
  modelled(of, NULL)
}

soft_rank <- function(x, epsilon = 0.01) call_program("softRank", list(x = array_of(as.double(x)), options = list(epsilon = epsilon)))
soft_sort <- function(x, epsilon = 0.01) call_program("softSort", list(x = array_of(as.double(x)), options = list(epsilon = epsilon)))
