# Writes tables of R's packages that have only numbers, 50 to 250 rows and 5 to 60 columns of at least three values,
# to a folder: Rscript missbench.R FOLDER. These bounds are MissBench's.
to <- commandArgs(TRUE)[1]
dir.create(to, showWarnings = FALSE)
numbers <- function(x) {
  x <- as.data.frame(x)
  x <- x[vapply(x, is.numeric, NA)]
  x <- x[complete.cases(x), , drop = FALSE]
  x[vapply(x, function(v) length(unique(v)) > 2, NA)]
}
packages <- c("datasets", "MASS", "boot", "cluster", "mlbench", "modeldata", "robustbase", "vegan", "spData", "sm",
  "survival", "rpart", "AER", "plm", "carData", "TH.data", "mclust")
for (p in packages[vapply(packages, requireNamespace, NA, quietly = TRUE)])
  for (name in unique(sub(" .*", "", data(package = p)$results[, "Item"]))) {
    within <- new.env()
    x <- tryCatch({
      suppressWarnings(data(list = name, package = p, envir = within))
      get(name, within)
    }, error = function(e) NULL)
    if (!is.data.frame(x) && !is.matrix(x)) next
    x <- tryCatch(numbers(x), error = function(e) data.frame())
    if (nrow(x) >= 50 && nrow(x) <= 250 && ncol(x) >= 5 && ncol(x) <= 60)
      write.csv(x, file.path(to, paste0(p, "-", name, ".csv")), row.names = FALSE)
  }
