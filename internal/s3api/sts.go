package s3api

import (
	"errors"
	"net/http"
)

// ReadKeys reads the answer of the service STS, which has keys of a role.
func ReadKeys(res *http.Response) (Keys, error) {
	text, err := readBody(res)
	if err != nil {
		return Keys{}, unreadable(res, err)
	}
	root, err := parseXML(text)
	if err != nil {
		return Keys{}, unreadable(res, err)
	}
	for _, result := range root.inner {
		found := result.child("Credentials")
		keys := Keys{Access: found.find("AccessKeyId"), Secret: found.find("SecretAccessKey"), Session: found.find("SessionToken")}
		if !keys.Complete() {
			continue
		}
		if keys.Expires, err = instant(found.find("Expiration")); err != nil {
			return Keys{}, unreadable(res, errors.New("it has no time when the keys expire"))
		}
		return keys, nil
	}
	return Keys{}, unreadable(res, errors.New("it has no keys"))
}
