module baseline

go 1.21
