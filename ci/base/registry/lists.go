package registry

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
)

func (s *server) listTags(w http.ResponseWriter, r request) error {
	tags, err := s.store.tags(r.repository)
	if errors.Is(err, fs.ErrNotExist) {
		return &apiError{http.StatusNotFound, "NAME_UNKNOWN", "no repository " + r.repository}
	} else if err != nil {
		return err
	}
	page, err := paginate(w, r, tags)
	if err != nil {
		return err
	}
	return writeJSON(w, struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
	}{r.repository, page})
}

func (s *server) catalog(w http.ResponseWriter, r request) error {
	names, err := s.store.repositories()
	if err != nil {
		return err
	}
	page, err := paginate(w, r, names)
	if err != nil {
		return err
	}
	return writeJSON(w, struct {
		Repositories []string `json:"repositories"`
	}{page})
}

// paginate cuts a sorted list as the parameters n (how many) and last (after which) say, and links the next page.
func paginate(w http.ResponseWriter, r request, sorted []string) ([]string, error) {
	query := r.URL.Query()
	start := 0
	for last := query.Get("last"); start < len(sorted) && last != "" && sorted[start] <= last; {
		start++
	}
	page := sorted[start:]
	if !query.Has("n") {
		return page, nil
	}
	n, err := strconv.Atoi(query.Get("n"))
	if err != nil || n < 0 {
		return nil, &apiError{http.StatusBadRequest, "PAGINATION_NUMBER_INVALID", "n must be a number, 0 or more"}
	}
	if n < len(page) {
		page = page[:n]
		if n > 0 {
			next := url.Values{"n": {strconv.Itoa(n)}, "last": {page[n-1]}}
			w.Header().Set("Link", "<"+r.URL.Path+"?"+next.Encode()+`>; rel="next"`)
		}
	}
	return page, nil
}

func writeJSON(w http.ResponseWriter, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) // a client that went away is no failure of ours
	return nil
}
