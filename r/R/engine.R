# The engine: the program `quantmf serve`, one process a call, and the frames in which a call goes to it. docs/serve.md
# of the project has the layout: "qmf1", the length of a header in JSON (4 bytes), that of a body (8 bytes), the
# header, and the body, which holds arrays.

# program returns the path of the program: option quantmf.program, $QUANTMF, that of the package, or that on the path.
program <- function() {
  carried <- system.file("bin", if (.Platform$OS.type == "windows") "quantmf.exe" else "quantmf", package = "quantmf")
  for (path in c(getOption("quantmf.program", ""), Sys.getenv("QUANTMF"), carried, Sys.which("quantmf"))) {
    if (nzchar(path)) return(path)
  }
  stop("quantmf: this installation carries no program, and none is on the path")
}

# whole writes a whole number of so many bytes, the lowest first.
whole <- function(con, value, bytes) {
  writeBin(as.raw(value %/% 256^(seq_len(bytes) - 1) %% 256), con)
}

# array marks numbers as an array of a frame: a matrix goes row by row.
array_of <- function(value, type = "f8") {
  shape <- if (is.matrix(value)) dim(value) else length(value)
  structure(list(type = type, shape = shape, value = if (is.matrix(value)) t(value) else value), class = "quantmf_array")
}

# call makes a call of the program and returns its result.
call_program <- function(name, args) {
  arrays <- list()
  aside <- function(value) {
    if (inherits(value, "quantmf_array")) {
      arrays[[length(arrays) + 1]] <<- value
      return(list(`$array` = length(arrays) - 1))
    }
    if (is.raw(value)) return(aside(array_of(value, "u1")))
    if (is.list(value)) return(lapply(value, aside))
    value
  }
  plain <- aside(args)
  header <- list(id = 1, call = name, args = plain)
  if (length(arrays) > 0) {
    header$arrays <- lapply(arrays, function(of) list(type = of$type, shape = as.list(of$shape)))
  }
  text <- charToRaw(enc2utf8(as.character(jsonlite::toJSON(header, auto_unbox = TRUE, digits = NA, null = "null"))))
  widths <- c(f8 = 8, i8 = 8, u4 = 4, u1 = 1)
  sizes <- vapply(arrays, function(of) prod(of$shape) * widths[[of$type]], 0)

  files <- tempfile(c("quantmf-in", "quantmf-out"))
  on.exit(unlink(files))
  con <- file(files[1], "wb")
  writeBin(charToRaw("qmf1"), con)
  whole(con, length(text), 4)
  whole(con, sum(sizes + -sizes %% 8), 8)
  writeBin(text, con)
  for (i in seq_along(arrays)) {
    of <- arrays[[i]]
    switch(of$type,
      f8 = writeBin(as.double(of$value), con, endian = "little"),
      u4 = writeBin(as.integer(of$value), con, endian = "little"),
      i8 = writeBin(as.integer(rbind(as.integer(of$value), 0L)), con, endian = "little"),
      u1 = writeBin(of$value, con)
    )
    writeBin(raw(-sizes[i] %% 8), con)
  }
  close(con)
  memory <- Sys.getenv("QUANTMF_MEMORY")
  code <- system2(program(), c("serve", if (nzchar(memory)) c("-max-memory", memory)), stdin = files[1], stdout = files[2])
  answer <- read_answer(files[2])
  if (is.null(answer)) stop("quantmf: the program ended with code ", code)
  answer
}

# read_answer returns the result in a file of frames, or stops with its error.
read_answer <- function(path) {
  con <- file(path, "rb")
  on.exit(close(con))
  repeat {
    start <- readBin(con, "raw", 16)
    if (length(start) < 16 || !identical(start[1:4], charToRaw("qmf1"))) return(NULL)
    text <- rawToChar(readBin(con, "raw", sum(as.integer(start[5:8]) * 256^(0:3))))
    Encoding(text) <- "UTF-8"
    header <- jsonlite::fromJSON(text, simplifyVector = FALSE)
    arrays <- lapply(header$arrays, read_array, con = con)
    if (!is.null(header$error)) stop(structure(c(header$error, list(call = NULL)), class = c("quantmf_error", "error", "condition")))
    if ("result" %in% names(header)) return(filled(header$result, arrays))
  }
}

read_array <- function(of, con) {
  shape <- unlist(of$shape)
  n <- prod(shape)
  if (of$type == "u1") {
    value <- readBin(con, "raw", n)
    readBin(con, "raw", -n %% 8)
    return(value)
  }
  value <- readBin(con, "double", n, size = 8, endian = "little")
  if (length(shape) == 2) matrix(value, shape[1], shape[2], byrow = TRUE) else value
}

# filled puts arrays into their places.
filled <- function(value, arrays) {
  if (!is.list(value)) return(value)
  if (identical(names(value), "$array")) return(arrays[[value[["$array"]] + 1]])
  lapply(value, filled, arrays = arrays)
}
