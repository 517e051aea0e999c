package infisical

import (
	"net/http"
	"path"
	"strings"
	"time"
)

type folderAnswer struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Version   int       `json:"version"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	EnvID     string    `json:"envId"`
	ParentID  string    `json:"parentId"`
}

// folderPlace is a place whose path is the parent of the folder that is meant.
type folderPlace struct {
	place
	Path string `json:"path"`
	Name string `json:"name"`
}

func (e *environment) show(slug, at string) folderAnswer {
	f := e.Folders[at]
	answer := folderAnswer{ID: f.ID, Name: path.Base(at), Version: f.Version, CreatedAt: f.Created, UpdatedAt: f.Updated, EnvID: slug}
	if at != "/" {
		answer.ParentID = e.Folders[path.Dir(at)].ID
	}
	return answer
}

func (s *Server) listFolders(r *http.Request, who *identity) (any, error) {
	at := queried(r)
	_, project, err := at.project(s.store.current.Load(), who)
	if err != nil {
		return nil, err
	}
	folders := []folderAnswer{}
	if e := project.Environments[at.Environment]; e != nil {
		parent := cleanPath(r.URL.Query().Get("path"))
		for _, found := range e.under(parent) {
			if found != parent && path.Dir(found) == parent {
				folders = append(folders, e.show(at.Environment, found))
			}
		}
	}
	return map[string]any{"folders": folders}, nil
}

// createFolder makes the folders above it too, and answers the existing one where it is there already.
func (s *Server) createFolder(r *http.Request, who *identity) (any, error) {
	var body folderPlace
	if err := read(r, &body); err != nil {
		return nil, err
	}
	if body.Name == "" || strings.ContainsAny(body.Name, "/.") {
		return nil, unprocessable("name: Invalid folder name")
	}
	return s.editFolders(who, body, actionCreate, func(e *environment) (any, error) {
		at := path.Join(cleanPath(body.Path), body.Name)
		e.make(at)
		return map[string]any{"folder": e.show(body.Environment, at)}, nil
	})
}

func (s *Server) renameFolder(r *http.Request, who *identity) (any, error) {
	var body folderPlace
	if err := read(r, &body); err != nil {
		return nil, err
	}
	if body.Name == "" || strings.ContainsAny(body.Name, "/.") {
		return nil, unprocessable("name: Invalid folder name")
	}
	return s.editFolders(who, body, actionEdit, func(e *environment) (any, error) {
		at := e.find(body.Path, r.PathValue("id"))
		if at == "" {
			return nil, notFound("Folder with ID '%s' not found", r.PathValue("id"))
		}
		renamed := path.Join(path.Dir(at), body.Name)
		if e.Folders[renamed] != nil && renamed != at {
			return nil, badRequest("Folder with name '%s' already exists in path", body.Name)
		}
		for _, old := range e.under(at) {
			f := e.Folders[old]
			delete(e.Folders, old)
			e.Folders[renamed+strings.TrimPrefix(old, at)] = f
		}
		e.Folders[renamed].Version++
		e.Folders[renamed].Updated = time.Now().UTC()
		return map[string]any{"folder": e.show(body.Environment, renamed)}, nil
	})
}

// deleteFolder takes the folder's id or its name under the path, with all that is in it.
func (s *Server) deleteFolder(r *http.Request, who *identity) (any, error) {
	var body folderPlace
	if err := read(r, &body); err != nil {
		return nil, err
	}
	return s.editFolders(who, body, actionDelete, func(e *environment) (any, error) {
		at := e.find(body.Path, r.PathValue("id"))
		if at == "" {
			return nil, notFound("Folder with ID '%s' not found", r.PathValue("id"))
		}
		answer := map[string]any{"folder": e.show(body.Environment, at)}
		for _, gone := range e.under(at) {
			delete(e.Folders, gone)
		}
		return answer, nil
	})
}

// find is the path of a folder below a parent by its id or name, empty where there is none.
func (e *environment) find(parent, idOrName string) string {
	parent = cleanPath(parent)
	for at, f := range e.Folders {
		if at != "/" && path.Dir(at) == parent && (f.ID == idOrName || path.Base(at) == idOrName) {
			return at
		}
	}
	return ""
}

// editFolders asks for the permission in the path of the parent. Source: Infisical 00e59be,
// backend/src/services/secret-folder/secret-folder-service.ts, where a list of folders asks for none.
func (s *Server) editFolders(who *identity, at folderPlace, action string, edit func(*environment) (any, error)) (any, error) {
	var answer any
	err := s.store.change(func(st *state) error {
		_, project, err := at.project(st, who)
		if err != nil {
			return err
		}
		if !who.can(subjectFolders, action, &thing{environment: at.Environment, path: cleanPath(at.Path)}) {
			return notAllowed(subjectFolders, action)
		}
		e := project.Environments[at.Environment]
		if e == nil {
			return notFound("Environment with slug '%s' in project not found", at.Environment)
		}
		answer, err = edit(e)
		return err
	})
	return answer, err
}
