# Writes the tables beside it that R makes, with R 4: Rscript make.R
x <- matrix(c(1.5, 3, 2, 4.25), 2, dimnames = list(c("TP53", "EGFR"), c("a", "b")))
write.table(x, "r.txt")
write.table(x, "r-tab.txt", sep = "\t", quote = FALSE)
write.csv(x, "r.csv")
write.csv2(round(x), "r2.csv")
write.csv2(x / 2, "r-comma.csv")
write.table(x, "r-none.txt", col.names = FALSE, row.names = FALSE)
numbered <- x
dimnames(numbered) <- list(c(7157, 1956), c(101, 205))
write.table(numbered, "r-numbers.txt")
write.csv(numbered, "r-numbers.csv")
write.csv(x, "r-norows.csv", row.names = FALSE)
odd <- x
dimnames(odd) <- list(c('5" end', "a b"), c("s 1", "s,2"))
write.table(odd, "r-odd.txt")
write.csv(odd, "r-odd.csv")
x[2, 2] <- NA
write.table(x, "r-missing.txt")
save <- gzfile("r.tsv.gz", "w")
write.table(x[, 1, drop = FALSE], save, sep = "\t", col.names = NA)
close(save)
